// Files of the JVM project: taken as they are, or the line to change is named.
#include <gmock/gmock.h>

#include "cli/config_fixture.h"

namespace simba::cli {
namespace {

using ::testing::HasSubstr;

class JvmFileTest : public ConfigTest {
 protected:
  const Words mysql{"--store", "mysql://db/app"};

  std::string value_in(const std::string& file, const std::string& key) {
    return value(key, {"--config", file, "--store", "mysql://db/app"});
  }
};

TEST_F(JvmFileTest, AFileOfTheJvmProjectIsTakenAndSaysWhatIsMissing) {
  const std::string jvm =
      "spring:\n  application:\n    name: app\nsimba:\n  jdbc:\n    enabled: true\n    ttl: 11s\n"
      "    transition: 7s\n    initial-delay: 1s\n";
  write("simba.yaml", jvm);
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:5: simba.jdbc is there, but not where the store is: "
                                   "add 'store: mysql://USER@HOST/DATABASE'"));
  EXPECT_EQ(value("ttl", mysql), "11s from simba.yaml:7");
  EXPECT_EQ(value("transition", {"--store", "postgresql://db/app"}), "7s from simba.yaml:8");
  EXPECT_EQ(value("initial-delay", mysql), "1s from simba.yaml:9");
  EXPECT_EQ(value("ttl", {"--store", "sqlite:a.db"}), "10s from default") << "of another store";
}

TEST_F(JvmFileTest, PropertiesWithDotsAreTheSame) {
  write("simba.yaml", "simba.redis.ttl: 12s\nsimba.store: redis://cache\n");
  EXPECT_EQ(value("ttl"), "12s from simba.yaml:1");
  write(
      "simba.yaml",
      "simba.enabled: true\nsimba:\n  store: redis://cache\n  redis.ttl: 12s\n  enabled: false\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:5: 'enabled' stands here twice"));
  write("simba.yaml",
        "simba.enabled: true\nspring.x: y\nsimba:\n  store: redis://cache\n  redis.ttl: 12s\n");
  EXPECT_EQ(value("ttl"), "12s from simba.yaml:5");
}

TEST_F(JvmFileTest, ASecondDocumentIsLeftAloneOrRefusedButNotPassedOver) {
  const std::string first = "simba:\n  store: sqlite:a.db\n---\n";
  write("simba.yaml", first + "spring:\n  config.activate.on-profile: prod\n---\n");
  EXPECT_EQ(value("store"), "sqlite:a.db from simba.yaml:2");
  write("simba.yaml", first + "spring:\n  profiles: prod\nsimba:\n  ttl: 3s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:6: 'simba' stands in a second document (after "
                                   "'---'); write all of it in the first one"));
  write("simba.yaml", first + "---\nsimba.ttl: 3s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:5: 'simba.ttl' stands in a second document"));
}

// As Spring binds them.
TEST_F(JvmFileTest, APropertyMayBeWrittenInEveryWayThatSpringTakes) {
  for (const char* name : {"initial-delay", "initialDelay", "initial_delay", "INITIAL_DELAY"}) {
    write("simba.yaml", "simba:\n  jdbc:\n    " + std::string(name) + ": 1s\n");
    EXPECT_EQ(value("initial-delay", mysql), "1s from simba.yaml:3") << name;
    write("simba.yaml", "simba.jdbc." + std::string(name) + ": 2s\n");
    EXPECT_EQ(value("initial-delay", mysql), "2s from simba.yaml:1") << name;
    write("simba.yaml", "simba:\n  " + std::string(name) + ": 3s\n");
    EXPECT_EQ(value("initial-delay", mysql), "3s from simba.yaml:2") << name;
  }
  write("simba.yaml", "simba:\n  jdbc:\n    initial-delay: 1s\n    initialDelay: 2s\n");
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:4: 'jdbc.initial-delay' stands here twice"));
}

TEST_F(JvmFileTest, AFileOfAnApplicationMayHoldAnythingBesides) {
  const std::string application =
      "spring:\n  datasource:\n    url: jdbc:mysql://db/app\ncosid:\n  namespace: app\n"
      "simba:\n  jdbc:\n    ttl: 11s\nmy.list: [1, 2]\n";
  for (const char* name : {"application.yaml", "application-prod.yml", "bootstrap.yaml"}) {
    write(name, application);
    EXPECT_EQ(value_in(name, "ttl"), "11s from " + std::string(name) + ":8");
  }
  write("simba.yaml", application);
  EXPECT_THAT(refusal(), HasSubstr("simba.yaml:4: 'cosid' is not known here; everything stands"));
  write("application.yaml", "spring:\n  x: y\nsibma:\n  jdbc:\n    ttl: 11s\n");
  EXPECT_THAT(value_in("application.yaml", "ttl"),
              HasSubstr("application.yaml: nothing stands under 'simba:' in this file"));
}

TEST_F(JvmFileTest, DurationsOfSpringThatWeDoNotKnowNameTheLine) {
  write("application.yaml", "simba:\n  jdbc:\n    ttl: PT10S\n");
  EXPECT_THAT(value_in("application.yaml", "ttl"),
              HasSubstr("application.yaml:3: jdbc.ttl is 'PT10S', which is no duration; write a "
                        "number and a unit"));
  write("application.yaml", "simba:\n  jdbc:\n    ttl: 10000\n");
  EXPECT_THAT(value_in("application.yaml", "ttl"),
              HasSubstr("application.yaml:3: jdbc.ttl is '10000' without a unit"));
}

TEST_F(JvmFileTest, AFileOfPropertiesIsRefusedWithTheFirstLineToWriteAnew) {
  write("application.properties",
        "spring.application.name=app\n  simba.jdbc.ttl = 10s\nsimba.jdbc.transition=6s\n");
  EXPECT_THAT(value_in("application.properties", "ttl"),
              HasSubstr("application.properties:2: a properties file is not read; write "
                        "'simba.jdbc.ttl: VALUE' for 'simba.jdbc.ttl=VALUE' in a file that ends "
                        "in .yaml, and name that one"));
}

}  // namespace
}  // namespace simba::cli
