import java.io.File;
import java.util.HashMap;
import java.util.Map;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/** For zookeeper_fault_test.cc: DATA PATH COUNT sets how many children a node has had, offline. */
public class SetCount {
  public static void main(String[] arguments) throws Exception {
    File data = new File(arguments[0]);
    FileTxnSnapLog log = new FileTxnSnapLog(data, data);
    DataTree tree = new DataTree();
    Map<Long, Integer> sessions = new HashMap<>();
    long zxid = log.restore(tree, sessions, (header, record, digest) -> {});
    tree.lastProcessedZxid = zxid;
    tree.setCversionPzxid(arguments[1], Integer.parseInt(arguments[2]), zxid + 1);
    tree.lastProcessedZxid = zxid + 1;
    log.save(tree, new java.util.concurrent.ConcurrentHashMap<>(sessions), true);
    log.close();
  }
}
