package headgate.connect.hash;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.fails;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Date;
import java.util.List;
import java.util.Map;

/** How contracts are read, and which Java values fit which type. */
public final class ContractCases {
  private static String text(String contract, Object value) {
    RowHash hash = RowHash.version2(HashContract.read(contract));
    return new String(hash.text(name -> value), StandardCharsets.UTF_8);
  }

  public void oneLineJsonAndAFileSayTheSame() throws Exception {
    String json =
        "{\"fields\": [{\"name\": \"a\", \"type\": \"decimal(2)\"}, {\"name\": \"b\", \"type\": \"map<string,list<double(6)>>\"}]}";
    HashContract wanted = HashContract.read("a:decimal(2), b:map<string, list<double(6)>>");
    equal(wanted, HashContract.read(json));
    Path file = Files.createTempFile("contract", ".json");
    try {
      Files.writeString(file, json);
      equal(wanted, HashContract.read(file.toString()));
    } finally {
      Files.delete(file);
    }
  }

  public void whatIsNoContractIsRefused() {
    List<String> wrong =
        List.of(
            "", "a", "a:", ":string", "a:text", "a:decimal(31)", "a:double(16)", "a:decimal(x)",
            "a:timestamp", "a:timestamp(ns)", "a:list", "a:map<string>", "a:string,a:string",
            "a:string(nulls)", "a:integer(nulls_empty)", "a:string b:string", "{}", "{\"fields\":[]}",
            "{\"fields\":[{\"name\":\"a\",\"type\":\"decimal\",\"scale\":2}]}", "{nonsense");
    for (String text : wrong) {
      fails(IllegalArgumentException.class, () -> HashContract.read(text));
    }
  }

  public void javaValuesFitTheirTypes() {
    equal("i5;", text("a:integer", (short) 5));
    equal("i5;", text("a:integer", new BigDecimal("5")));
    equal("d1250;", text("a:decimal(2)", "12.5"));
    equal("t1;", text("a:timestamp(ms)", new Date(1)));
    equal("t1706704200123;", text("a:timestamp(ms)", "2024-01-31T12:30:00.123Z"));
    equal("f500000;", text("a:double(6)", 0.5f));
    equal("x00FF;", text("a:binary", new byte[] {0, -1}));
    equal("M1:s1:ai1;", text("a:map<string,integer>", Map.of("a", 1)));
  }

  public void otherValuesAreRefused() {
    fails(IllegalArgumentException.class, () -> text("a:integer", "5"));
    fails(IllegalArgumentException.class, () -> text("a:integer", 5.0));
    fails(IllegalArgumentException.class, () -> text("a:timestamp(ms)", 5L));
    fails(IllegalArgumentException.class, () -> text("a:decimal(2)", 0.1));
    fails(IllegalArgumentException.class, () -> text("a:string", 5));
    fails(IllegalArgumentException.class, () -> text("a:string", "\ud800"));
    fails(IllegalArgumentException.class, () -> text("a:double", new BigDecimal("1e999")));
  }

  public void hugeExponentsCostNothing() {
    equal("d1e1000000000;", text("a:decimal(2)", new BigDecimal("1e1000000000")));
    equal("d0;", text("a:decimal(2)", new BigDecimal("1e-1000000000")));
  }
}
