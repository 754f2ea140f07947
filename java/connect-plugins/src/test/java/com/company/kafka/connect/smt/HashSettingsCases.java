package com.company.kafka.connect.smt;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.fails;
import static headgate.connect.Cases.holds;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;

/** Which settings are refused before a connector starts. */
public final class HashSettingsCases {
  private static List<String> validated(String name, Map<String, String> settings) {
    return HashSettings.DEFINITION.validate(settings).stream()
        .filter(value -> value.name().equals(name))
        .findFirst()
        .orElseThrow()
        .errorMessages();
  }

  public void anUnknownAlgorithmIsRefusedByValidationAndAtTheStart() {
    Map<String, String> settings = Map.of("hash.fields", "a", "hash.algorithm", "SHA-257");
    equal(1, validated("hash.algorithm", settings).size());
    fails(ConfigException.class, () -> Records.smt(settings));
  }

  public void theThreeKnownAlgorithmsAreTaken() {
    for (String algorithm : List.of("SHA-256", "SHA-512", "MD5")) {
      Records.smt(Map.of("hash.fields", "a", "hash.algorithm", algorithm)).close();
    }
  }

  public void aWrongContractIsRefusedByValidation() {
    Map<String, String> settings = Map.of("hash.version", "2", "hash.contract", "a:money");
    holds(validated("hash.contract", settings).toString().contains("no type 'money'"), "it says so");
  }

  public void versionTwoNeedsAContract() {
    fails(ConfigException.class, () -> Records.smt(Map.of("hash.version", "2", "hash.fields", "a")));
  }

  public void versionTwoIsSha256() {
    Map<String, String> settings = new HashMap<>(Map.of("hash.version", "2"));
    settings.put("hash.contract", "a:string");
    settings.put("hash.algorithm", "MD5");
    fails(ConfigException.class, () -> Records.smt(settings));
  }

  public void fieldsAndContractMustAgree() {
    Map<String, String> settings = Map.of("hash.fields", "a,b", "hash.contract", "a:string");
    fails(ConfigException.class, () -> Records.smt(settings));
    Records.smt(Map.of("hash.fields", "a", "hash.contract", "a:string")).close();
  }

  public void noFieldsAtAllAreRefused() {
    fails(ConfigException.class, () -> Records.smt(Map.of()));
  }
}
