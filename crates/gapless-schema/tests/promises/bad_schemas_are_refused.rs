use std::path::Path;

use gapless_schema::generate::{Generator, SchemaError, check, generate};
use proptest::prelude::*;
use proptest::sample::Index;

const GOOD: &str = r#"<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="p" id="1" version="1">
  <types>
    <composite name="messageHeader">
      <type name="blockLength" primitiveType="uint16"/>
      <type name="templateId" primitiveType="uint16"/>
      <type name="schemaId" primitiveType="uint16"/>
      <type name="version" primitiveType="uint16"/>
    </composite>
    <composite name="groupSizeEncoding">
      <type name="blockLength" primitiveType="uint8"/>
      <type name="numInGroup" primitiveType="uint8"/>
    </composite>
    <composite name="text">
      <type name="length" primitiveType="uint16"/>
      <type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/>
    </composite>
    <type name="Six" primitiveType="char" length="6"/>
    <type name="Ron" primitiveType="uint8" minValue="90" maxValue="110"/>
    <type name="Always" primitiveType="int8" presence="constant">-7</type>
    <enum name="Side" encodingType="uint8"><validValue name="buy">1</validValue>
      <validValue name="sell">2</validValue></enum>
    <set name="Marks" encodingType="uint8"><choice name="one">1</choice>
      <choice name="two">2</choice></set>
    <composite name="Pair">
      <type name="first" primitiveType="int32"/>
      <type name="second" primitiveType="int32" offset="4"/>
    </composite>
  </types>
  <sbe:message name="Order" id="1" blockLength="40">
    <field name="a" id="1" type="uint64"/>
    <field name="b" id="2" type="Six" offset="8"/>
    <field name="c" id="3" type="Pair" sinceVersion="1"/>
    <field name="d" id="4" type="Side" presence="constant" valueRef="Side.buy"/>
    <group name="g" id="5">
      <field name="x" id="1" type="Marks"/>
    </group>
    <data name="t" id="6" type="text"/>
  </sbe:message>
</sbe:messageSchema>
"#;

fn refusal(schema: &str) -> String {
    match Generator::new().schema_text("bad.xml", schema).check() {
        Err(error) => error.to_string(),
        Ok(summary) => panic!("it was taken: {summary}\n{schema}"),
    }
}

#[test]
fn good_schema_is_accepted() {
    let generated = Generator::new().schema_text("dir/good-one.xml", GOOD).generate().unwrap();
    assert_eq!(generated.summary, "schema \"p\", id 1, version 1: 1 message (Order)");
    assert_eq!(generated.module, "good_one");
}

#[test]
fn schema_text_stays_text() {
    let odd = r#"package="a b&#10;mod evil {}.c*/" description="x&#10;*/ } mod evil { /* [y] &quot;""#;
    let schema = GOOD.replacen(r#"package="p""#, odd, 1);
    let generated = Generator::new().schema_text("self.xml", schema).generate().unwrap();
    assert!(generated.rust.lines().all(|line| !line.trim_start().starts_with("mod evil")), "{}", generated.rust);
    assert!(generated.proto.contains("package a_b_mod_evil.c;"), "{}", generated.proto);
    assert_eq!(generated.module, "self_");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a line for each mistake")]
fn mistakes_are_named_with_place() {
    let cases: &[(&str, &str, &str)] = &[
        ("</types>", "</typos>", "bad.xml:28:3: malformed XML"),
        ("<sbe:messageSchema ", "<!DOCTYPE x><sbe:messageSchema ", "malformed XML"),
        ("sbe:messageSchema", "sbe:schema", "bad.xml:1:1: the root element is <schema>; expected <messageSchema>"),
        (r#" id="1" version="1">"#, r#" version="1">"#, r#"bad.xml:1:1: <messageSchema> has no attribute "id""#),
        (
            r#" id="1" version="1">"#,
            r#" id="70000" version="1">"#,
            r#"bad.xml:1:75: id is "70000"; expected a schema id from 0 to 65535"#,
        ),
        (
            r#"version="1">"#,
            r#"version="1" byteOrder="middle">"#,
            r#"byteOrder is "middle"; expected littleEndian or bigEndian"#,
        ),
        (r#"version="1">"#, r#"version="1" headerType="other">"#, r#"bad.xml:1:1: the header type "other" is missing"#),
        (r#"name="templateId""#, r#"name="template""#, r#"composite "messageHeader": there is no member "templateId""#),
        (
            r#"name="version" primitiveType="uint16""#,
            r#"name="version" primitiveType="int16""#,
            r#"not an unsigned integer: "version""#,
        ),
        (
            "  <types>",
            "  <kinds/><types>",
            "bad.xml:2:3: unknown element <kinds>; expected <types>, <message> or xi:include",
        ),
        (r#"<type name="Six""#, r#"<typ name="Six""#, "bad.xml:17:5: <typ> cannot stand in <types>"),
        (
            r#"<type name="Six" primitiveType="char""#,
            r#"<type name="Six" primitiveType="character""#,
            r#"bad.xml:17:22: unknown primitive type "character"; expected char, int8"#,
        ),
        (r#"<type name="Six""#, r#"<type"#, r#"bad.xml:17:5: <type> has no attribute "name""#),
        (r#"name="Six""#, r#"name="6ix""#, r#"bad.xml:17:11: the name "6ix" is not a symbolic name"#),
        (
            r#"name="Six""#,
            r#"name="Ron""#,
            r#"bad.xml:18:5: type "Ron" is defined twice; expected one definition; the first is in line 17"#,
        ),
        (r#"name="Six""#, r#"name="int8""#, r#""int8" is a primitive type"#),
        (r#"length="6""#, r#"length="six""#, r#"bad.xml:17:43: length is "six"; expected a number of elements"#),
        (r#"length="6""#, r#"length="9999999999""#, "length is"),
        (r#"length="6""#, r#"length="2000000""#, "length is 2000000; expected at most 1048576"),
        (r#"length="6""#, r#"length="6" characterEncoding="EBCDIC""#, r#"unknown character encoding "EBCDIC""#),
        (
            r#"minValue="90""#,
            r#"minValue="-1""#,
            r#"bad.xml:18:44: minValue is "-1"; expected an integer from 0 to 255"#,
        ),
        (r#"maxValue="110""#, r#"maxValue="110" nullValue="300""#, r#"nullValue is "300""#),
        (
            r#"presence="constant">-7"#,
            r#"presence="maybe">-7"#,
            r#"presence is "maybe"; expected required, optional or constant"#,
        ),
        (">-7<", ">-129<", r#"bad.xml:19:5: the constant is "-129"; expected an integer from -128 to 127"#),
        (
            r#"presence="constant">-7"#,
            r#"presence="constant" minValue="0">-7"#,
            "the constant -7 is below minValue; expected at least 0",
        ),
        (
            r#"encodingType="uint8"><validValue"#,
            r#"encodingType="float"><validValue"#,
            "bad.xml:20:23: an enum of floating point numbers",
        ),
        (
            r#"encodingType="uint8"><validValue"#,
            r#"encodingType="Six"><validValue"#,
            r#"the encoding type "Six" is not a single number"#,
        ),
        (r#"name="sell">2"#, r#"name="sell">1"#, r#"bad.xml:21:7: value "sell" = 1 repeats "buy" = 1"#),
        (r#"name="sell">2"#, r#"name="buy">2"#, r#"value "buy" = 2 repeats "buy" = 1"#),
        (r#"name="sell">2"#, r#"name="sell">255"#, r#"value "sell" is the null value"#),
        (r#"name="sell">2"#, r#"name="sell">256"#, "expected an integer from 0 to 255"),
        (r#"name="sell">2"#, r#"name="sell">two"#, r#"the value is "two""#),
        (
            r#"encodingType="uint8"><choice"#,
            r#"encodingType="int8"><choice"#,
            "bad.xml:22:23: a set of another type; expected uint8, uint16, uint32 or uint64",
        ),
        (
            r#"name="two">2"#,
            r#"name="two">8"#,
            r#"bad.xml:23:7: choice "two" is "8"; expected the number of a bit, 0 to 7"#,
        ),
        (r#"name="two">2"#, r#"name="two">1"#, r#"choice "two" = 1 repeats "one" = 1"#),
        (r#"<type name="first""#, r#"<typo name="first""#, "bad.xml:25:7: <typo> is not a type"),
        (
            r#"<type name="first" primitiveType="int32"/>"#,
            r#"<field name="first" type="int32"/>"#,
            "bad.xml:25:7: <field> is not a type",
        ),
        (
            r#"<type name="first" primitiveType="int32"/>"#,
            r#"<ref name="first" type="Nothing"/>"#,
            r#"bad.xml:25:25: unknown type "Nothing"; expected one of messageHeader"#,
        ),
        (
            r#"<type name="first" primitiveType="int32"/>"#,
            r#"<ref name="first" type="side"/>"#,
            r#"did you mean "Side"?"#,
        ),
        (
            r#"<type name="first" primitiveType="int32"/>"#,
            r#"<ref name="first" type="Pair"/>"#,
            "bad.xml:25:25: the type refers to itself: Pair -> Pair",
        ),
        (r#"offset="4""#, r#"offset="3""#, "bad.xml:26:49: offset 3 lies within the field before; expected at least 4"),
        (r#"name="second""#, r#"name="first""#, r#"member "first" is there twice"#),
        (r#"name="Order" id="1""#, r#"name="Order""#, r#"bad.xml:29:3: <message> has no attribute "id""#),
        (r#"name="Order" id="1""#, r#"name="Order" id="65536""#, r#"bad.xml:29:29: id is "65536""#),
        (
            r#"blockLength="40""#,
            r#"blockLength="20""#,
            "bad.xml:29:36: blockLength 20 is too short for the fields of Order; expected at least 22",
        ),
        (r#"blockLength="40""#, r#"blockLength="65536""#, "the block of Order has 65536 bytes; expected at most 65535"),
        (r#"id="1" type="uint64""#, r#"id="1" type="uint63""#, r#"bad.xml:30:28: unknown type "uint63""#),
        (r#"id="1" type="uint64""#, r#"id="1" type="text""#, "bad.xml:30:5: a composite with data of variable length"),
        (r#"id="1" type="uint64""#, r#"type="uint64""#, r#"bad.xml:30:5: <field> "a" has no attribute "id""#),
        (
            r#"id="1" type="uint64""#,
            r#"id="0" type="uint64""#,
            r#"bad.xml:30:5: id 0 of "a" cannot be the number of a protobuf field"#,
        ),
        (r#"id="1" type="uint64""#, r#"id="19500" type="uint64""#, "expected 1 to 18999 or 20000 to 65535"),
        (
            r#"name="b" id="2""#,
            r#"name="b" id="1""#,
            "bad.xml:31:21: the id 1 is there twice; expected another than in line 30",
        ),
        (
            r#"name="b" id="2""#,
            r#"name="a" id="2""#,
            r#"bad.xml:31:12: the name "a" is there twice; expected another than in line 30"#,
        ),
        (r#"offset="8""#, r#"offset="7""#, "bad.xml:31:39: offset 7 lies within the field before; expected at least 8"),
        (r#"offset="8""#, r#"offset="18446744073709551615""#, "field \"b\" makes the block too long"),
        (
            r#"sinceVersion="1""#,
            r#"sinceVersion="2""#,
            "bad.xml:32:40: sinceVersion 2 is above the version 1 of the schema; expected at most 1",
        ),
        ("Side.buy", "Side.hold", r#"bad.xml:33:60: enum "Side" has no value "hold"; expected buy, sell"#),
        ("Side.buy", "Six.buy", r#""Six" is not an enum"#),
        ("Side.buy", "buy", r#"valueRef is "buy"; expected Enum.value"#),
        (r#" valueRef="Side.buy""#, "", r#"the constant field "d" has no value"#),
        (
            r#"<group name="g" id="5">"#,
            r#"<group name="g" id="5" dimensionType="Pair">"#,
            r#"composite "Pair": there is no member "blockLength""#,
        ),
        (
            r#"<group name="g" id="5">"#,
            r#"<group name="g" id="5" dimensionType="Six">"#,
            r#"bad.xml:34:28: "Six" is not a composite"#,
        ),
        (
            r#"<group name="g" id="5">"#,
            r#"<group name="g" id="5" blockLength="256">"#,
            "bad.xml:34:5: the block of Order.g has 256 bytes; expected at most 255",
        ),
        (r#"id="6" type="text""#, r#"id="6" type="Pair""#, r#"bad.xml:37:27: "Pair" is not the encoding of data"#),
        (
            r#"<data name="t" id="6" type="text"/>"#,
            r#"<data name="t" id="6" type="text"/><field name="z" id="9" type="int8"/>"#,
            "<field> comes too late in Order; expected fields first, then groups, then data",
        ),
        (
            r#"<data name="t" id="6" type="text"/>"#,
            "<dat/>",
            "bad.xml:37:5: <dat> in Order; expected <field>, <group> or <data>",
        ),
        ("</sbe:message>", r#"</sbe:message><sbe:message name="Order" id="2"/>"#, r#"message "Order" is there twice"#),
        (
            "</sbe:message>",
            r#"</sbe:message><sbe:message name="Other" id="1"/>"#,
            r#"message "Other" has the id 1 of "Order""#,
        ),
    ];
    let mut wrong = Vec::new();
    for (good, bad, expected) in cases {
        assert!(GOOD.contains(good), "{good:?} is in the schema");
        // The closing tag of the root follows the opening one.
        let schema = if *good == "sbe:messageSchema" { GOOD.replace(good, bad) } else { GOOD.replacen(good, bad, 1) };
        let error = refusal(&schema);
        assert!(error.starts_with("bad.xml:"), "{error}");
        if !error.contains(expected) {
            wrong.push(format!("{bad}\n  expected {expected}\n  found    {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn reference_cycles_are_refused() {
    let cycle = r#"<composite name="A"><ref name="b" type="B"/></composite>
      <composite name="B"><composite name="inner"><ref name="c" type="C"/></composite></composite>
      <composite name="C"><ref name="a" type="A"/></composite></types>"#;
    let error = refusal(&GOOD.replacen("</types>", cycle, 1));
    assert!(error.contains("the type refers to itself: A -> B -> C -> A"), "{error}");
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("<a>", "</a>"), ("<group name=\"g\" id=\"1\">", "</group>")] {
        let schema = format!("{}{}", open.repeat(100_000), close.repeat(100_000));
        let error = refusal(&schema);
        assert!(error.contains("nested too deeply; expected at most 64 levels"), "{error}");
    }
    let chain: String = (0..2000)
        .map(|index| format!(r#"<composite name="C{index}"><ref name="next" type="C{}"/></composite>"#, index + 1))
        .collect();
    let chain = format!(r#"{chain}<composite name="C2000"><type name="x" primitiveType="int8"/></composite></types>"#);
    let error = refusal(&GOOD.replacen("</types>", &chain, 1));
    assert!(error.contains("references are nested too deeply"), "{error}");
}

#[test]
fn missing_or_large_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = check(&folder.path().join("missing.xml")).unwrap_err();
    assert!(matches!(&missing, SchemaError::File { .. }), "{missing}");
    assert!(missing.to_string().contains("missing.xml"), "{missing}");
    let large = folder.path().join("large.xml");
    std::fs::File::create(&large).unwrap().set_len(17 << 20).unwrap();
    let error = check(&large).unwrap_err().to_string();
    assert!(error.contains("17825792 bytes found, expected a schema of at most 16777216 bytes"), "{error}");
    let binary = folder.path().join("binary.xml");
    std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    assert!(check(&binary).unwrap_err().to_string().contains("expected a readable schema in UTF-8"));
}

#[test]
fn include_errors_name_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("main.xml");
    let include = r#"<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more.xml"/>"#;
    let with_include =
        GOOD.replacen("  <types>", &format!("  {include}<types>"), 1).replacen("Six\" off", "More\" off", 1);
    std::fs::write(&main, &with_include).unwrap();
    let missing = check(&main).unwrap_err().to_string();
    assert!(missing.contains("main.xml:2:3") && missing.contains("more.xml"), "{missing}");
    std::fs::write(folder.path().join("more.xml"), "<types>\n<type name=\"More\" primitiveType=\"int9\"/></types>")
        .unwrap();
    let bad = check(&main).unwrap_err().to_string();
    assert!(bad.contains("more.xml:2:19: unknown primitive type"), "{bad}");
    std::fs::write(folder.path().join("more.xml"), "<types>\n<type name=\"More\" primitiveType=\"int8\"/></types>")
        .unwrap();
    assert!(check(&main).unwrap().ends_with("main.xml: schema \"p\", id 1, version 1: 1 message (Order)"));
    let out = folder.path().join("out/deep");
    let said = generate(&main, &out).unwrap();
    assert!(said.contains("wrote") && said.contains("main.rs") && said.contains("main.proto"), "{said}");
    assert!(std::fs::read_to_string(out.join("main.rs")).unwrap().contains("pub mod main {"));
    let blocked = generate(&main, Path::new("/proc/none")).unwrap_err();
    assert!(matches!(blocked, SchemaError::File { .. }), "{blocked}");
}

fn schemas() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let names = ["car.xml", "numbers.xml", "big-endian.xml", "extension-v2.xml"];
    let mut texts: Vec<_> =
        names.iter().map(|name| std::fs::read_to_string(folder.join(name)).expect("a schema")).collect();
    texts.push(GOOD.to_owned());
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(gapless_testkit::random::rounds(300, 30) as u32))]

    #[test]
    fn mutated_schemas_never_panic(
        schema in any::<Index>(),
        changes in proptest::collection::vec((0..5u8, any::<Index>(), any::<Index>(), odd()), 1..6),
    ) {
        let schemas = schemas();
        let mut text = schema.get(&schemas).clone();
        for (kind, from, to, odd) in changes {
            text = mutate(&text, kind, &from, &to, &odd);
        }
        match Generator::new().schema_text("mutated.xml", text).generate() {
            Ok(generated) => prop_assert!(generated.rust.contains("pub mod mutated")),
            Err(error) => prop_assert!(error.to_string().starts_with("mutated.xml:"), "{}", error),
        }
    }

    #[test]
    fn damaged_text_never_panics(schema in any::<Index>(), bytes in proptest::collection::vec((any::<Index>(), any::<char>()), 1..4)) {
        let schemas = schemas();
        let mut text: Vec<char> = schema.get(&schemas).chars().collect();
        for (index, character) in bytes {
            let index = index.index(text.len());
            text[index] = character;
        }
        let text: String = text.into_iter().collect();
        let _ = Generator::new().schema_text("damaged.xml", text).generate();
    }
}

fn odd() -> impl Strategy<Value = String> {
    let odd = [
        "",
        "0",
        "1",
        "-1",
        "255",
        "256",
        "65535",
        "65536",
        "4294967296",
        "99999999999999999999",
        "1048577",
        "char",
        "uint8",
        "int64",
        "float",
        "double",
        "constant",
        "optional",
        "required",
        "type",
        "self",
        "Self",
        "Option",
        "next",
        "a",
        "A",
        "_",
        "__",
        "9",
        "é",
        "Car",
        "Engine",
        "messageHeader",
        "varData",
        "length",
        "blockLength",
        "Code.A",
        "NaN",
        "1e400",
        "-0",
        "value",
        "UTF-8",
        "bigEndian",
        "groupSizeEncoding",
        "../car.xml",
    ];
    prop_oneof![proptest::sample::select(odd.to_vec()).prop_map(str::to_owned), "[a-zA-Z0-9_]{0,8}"]
}

fn mutate(text: &str, kind: u8, from: &Index, to: &Index, odd: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let (from_line, to_line) = (from.index(lines.len()), to.index(lines.len()));
    match kind {
        0 => {
            lines.remove(from_line);
        }
        1 => lines.insert(to_line, lines[from_line]),
        2 => lines.swap(from_line, to_line),
        _ => {
            // Every second part between quotes is an attribute's value.
            let mut parts: Vec<&str> = text.split('"').collect();
            let values = parts.len() / 2;
            if values == 0 {
                return text.to_owned();
            }
            let (from, to) = (2 * from.index(values) + 1, 2 * to.index(values) + 1);
            if kind == 3 {
                parts[from] = odd;
            } else {
                parts.swap(from, to);
            }
            return parts.join("\"");
        }
    }
    lines.join("\n")
}
