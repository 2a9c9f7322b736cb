use gapless_schema::generate::Generator;
use std::time::{Duration, Instant};

fn schema(types: &str, message: &str) -> String {
    format!(
        r#"<messageSchema package="p" id="1" version="3"><types>
<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
<type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/></composite>
<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/><type name="numInGroup" primitiveType="uint16"/></composite>
<composite name="text"><type name="length" primitiveType="uint16"/><type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>
{types}</types>
<message name="M" id="1">
{message}
</message>
</messageSchema>"#
    )
}

fn check(types: &str, message: &str) -> Result<String, String> {
    Generator::new().schema_text("s.xml", schema(types, message)).check().map_err(|error| error.to_string())
}

#[test]
fn groups_are_in_version_order() {
    let entry = r#"<field name="x" id="1" type="int8"/>"#;
    let group = |name: &str, id: u32, since: u32| {
        format!("<group name=\"{name}\" id=\"{id}\" sinceVersion=\"{since}\">{entry}</group>\n")
    };
    let data = |name: &str, id: u32, since: u32| {
        format!("<data name=\"{name}\" id=\"{id}\" type=\"text\" sinceVersion=\"{since}\"/>\n")
    };
    for good in [
        group("a", 1, 0) + &group("b", 2, 1) + &data("c", 3, 1) + &data("d", 4, 3),
        group("a", 1, 2) + &data("b", 2, 2),
        data("a", 1, 0) + &data("b", 2, 0),
    ] {
        check("", &good).unwrap();
    }
    for (bad, place) in [
        (group("a", 1, 1) + &data("old", 2, 0), "s.xml:9:1: \"old\", of version 0, stands behind \"a\", of version 1"),
        (group("a", 1, 2) + &group("old", 2, 1), "s.xml:9:1: \"old\", of version 1"),
        (data("a", 1, 3) + &data("old", 2, 2), "s.xml:9:1: \"old\", of version 2"),
    ] {
        let error = check("", &bad).unwrap_err();
        assert!(error.starts_with(place) && error.contains("in the order of their versions"), "{error}");
    }
    // The end of a group's entry is not on the wire.
    for late in [group("late", 9, 1), data("late", 9, 1)] {
        let error = check("", &format!("<group name=\"a\" id=\"1\">{entry}\n{late}</group>")).unwrap_err();
        assert!(error.starts_with("s.xml:9:1: \"late\" came to the entries of M.a in version 1"), "{error}");
        check("", &format!("<group name=\"a\" id=\"1\" sinceVersion=\"1\">{entry}\n{late}</group>")).unwrap();
    }
}

#[test]
fn fields_are_in_version_order() {
    let old = |more: &str| format!("<field name=\"old\" id=\"9\" type=\"int8\" {more}/>");
    let new = "<field name=\"new\" id=\"1\" type=\"int8\" sinceVersion=\"2\"/>\n";
    let error = check("", &format!("{new}{}", old("sinceVersion=\"1\""))).unwrap_err();
    let expected = "s.xml:9:1: \"old\", of version 1, stands behind \"new\", which has grown in version 2";
    assert!(error.starts_with(expected), "{error}");
    check("", &format!("{new}{}", old("offset=\"8\""))).unwrap();
    check("", &format!("{}{new}", old("sinceVersion=\"1\""))).unwrap();
    // A composite that has grown moves the fields after it.
    let grown = r#"<composite name="Grown"><type name="a" primitiveType="int8"/><type name="b" primitiveType="int8" sinceVersion="1"/></composite>"#;
    let field = "<field name=\"grown\" id=\"1\" type=\"Grown\"/>\n";
    let error = check(grown, &format!("{field}{}", old(""))).unwrap_err();
    assert!(error.contains("stands behind \"grown\", which has grown in version 1"), "{error}");
    check(grown, &format!("{field}{}", old("sinceVersion=\"1\""))).unwrap();
    let bad = r#"<composite name="Bad"><type name="a" primitiveType="int8" sinceVersion="1"/>
<type name="b" primitiveType="int8"/></composite>"#;
    let error = check(bad, field.trim()).unwrap_err();
    assert!(error.starts_with("s.xml:7:1: \"b\", of version 0, stands behind \"a\""), "{error}");
}

#[test]
fn encodings_are_checked_everywhere() {
    let data = "<data name=\"a\" id=\"1\" type=\"text\" characterEncoding=\"EBCDIC\"/>";
    let error = check("", data).unwrap_err();
    assert!(error.starts_with("s.xml:8:35: unknown character encoding \"EBCDIC\""), "{error}");
    check("", &data.replace("EBCDIC", "US-ASCII")).unwrap();
}

#[test]
fn unknown_attribute_is_refused() {
    for (element, expected) in [
        (
            "<field name=\"a\" id=\"1\" type=\"int8\" sinceversion=\"1\"/>",
            "s.xml:8:36: <field> has an unknown attribute \"sinceversion\"; expected an attribute of SBE; did you mean \
             \"sinceVersion\"?",
        ),
        (
            "<data name=\"a\" id=\"1\" type=\"text\" length=\"4\"/>",
            "s.xml:8:35: <data> has an unknown attribute \"length\"; expected one of name, id, type",
        ),
    ] {
        let error = check("", element).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let noted = "<field name=\"a\" id=\"1\" type=\"int8\" xmlns:my=\"urn:my\" my:note=\"x\"/>";
    check("", noted).expect("attributes of another namespace are allowed");
}

#[test]
fn missing_end_is_reported_at_the_end() {
    let whole = schema("", "<field name=\"a\" id=\"1\" type=\"int8\"/>");
    let lines = whole.lines().count();
    for cut in ["</messageSchema>", "</message>\n</messageSchema>"] {
        let error = Generator::new().schema_text("s.xml", whole.replace(cut, "")).check().unwrap_err().to_string();
        let line = lines - cut.lines().count() + 1;
        assert!(error.starts_with(&format!("s.xml:{line}:")), "{error}");
        assert!(!error.starts_with("s.xml:1:1:"), "{error}");
    }
    let error = Generator::new().schema_text("s.xml", "").check().unwrap_err().to_string();
    assert!(error.starts_with("s.xml:1:1: malformed XML"), "{error}");
}

#[test]
fn any_id_is_valid_without_protobuf() {
    let message = "<field name=\"a\" id=\"0\" type=\"int8\"/><field name=\"b\" id=\"19000\" type=\"int8\"/>\
                   <data name=\"c\" id=\"65535\" type=\"text\"/>";
    let error = check("", message).unwrap_err();
    assert!(error.contains("expected 1 to 18999 or 20000 to 65535, or no protobuf form (--sbe-only"), "{error}");
    let generator = Generator::new().schema_text("s.xml", schema("", message)).without_protobuf();
    generator.check().unwrap();
    let generated = generator.generate().unwrap();
    assert!(generated.proto.is_empty() && !generated.rust.contains("rotobuf"), "{}", generated.rust);
    for name in ["MEncoder", "MDecoder", "SbeObject for M"] {
        assert!(generated.rust.contains(name), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let said = generator.generate_into(folder.path()).unwrap();
    assert!(said.ends_with("s.rs") && folder.path().join("s.rs").is_file() && !folder.path().join("s.proto").exists());
}

#[test]
fn exponential_composite_is_refused() {
    for member in [
        r#"<type name="x" primitiveType="int8" presence="constant">1</type>"#,
        r#"<type name="x" primitiveType="int8"/>"#,
    ] {
        let mut types = format!("<composite name=\"C0\">{member}</composite>");
        for number in 1..30 {
            let before = number - 1;
            types.push_str(&format!(
                "<composite name=\"C{number}\"><ref name=\"a\" type=\"C{before}\"/><ref name=\"b\" type=\"C{before}\"/></composite>"
            ));
        }
        let began = Instant::now();
        let error = check(&types, "<field name=\"a\" id=\"1\" type=\"C29\"/>").unwrap_err();
        assert!(error.contains("has more than 4096 members with those of its own"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    let members: String = (0..4_000)
        .map(|n| format!("<type name=\"m{n}\" primitiveType=\"int8\" presence=\"constant\">1</type>"))
        .collect();
    let fields: String = (1..40).map(|n| format!("<field name=\"f{n}\" id=\"{n}\" type=\"Large\"/>")).collect();
    let error = check(&format!("<composite name=\"Large\">{members}</composite>"), &fields).unwrap_err();
    assert!(error.contains("the messages have more than 100000 fields"), "{error}");
}

/// A check that takes quadratic time would take minutes for these.
#[test]
fn long_schema_takes_linear_time() {
    let values: String = (0..60_000).map(|n| format!("<validValue name=\"v{n}\">{n}</validValue>\n")).collect();
    let began = Instant::now();
    check(&format!("<enum name=\"E\" encodingType=\"uint32\">{values}</enum>"), "").unwrap();
    let same: String =
        (0..2_000).map(|n| format!("<field name=\"a{}\" id=\"{}\" type=\"int8\"/>\n", "_".repeat(n), n + 1)).collect();
    check("", &same).unwrap();
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
