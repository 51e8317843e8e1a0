import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.RetryForever;

/**
 * A contender of Curator's own, for curator_test.cc: SERVERS PATH ID SESSION_TIMEOUT. Prints what
 * zookeeper_contender.cc prints; System.nanoTime() is CLOCK_MONOTONIC.
 */
public class CuratorContender {
  private static synchronized void say(String what) {
    System.out.println(what + " " + System.nanoTime());
    System.out.flush();
  }

  public static void main(String[] arguments) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(
            arguments[0], Integer.parseInt(arguments[3]), 5000, new RetryForever(50));
    client.start();
    LeaderLatch latch = new LeaderLatch(client, arguments[1], arguments[2]);
    latch.addListener(
        new LeaderLatchListener() {
          @Override
          public void isLeader() {
            say("acquired");
          }

          @Override
          public void notLeader() {
            say("released");
          }
        });
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  try {
                    if (latch.hasLeadership()) say("released");
                    latch.close();
                    client.close();
                  } catch (Exception trouble) {
                    trouble.printStackTrace();
                  }
                }));
    latch.start();
    say("started");
    Thread.currentThread().join();
  }
}
