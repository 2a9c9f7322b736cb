//! Unknown attributes are refused: a misspelled one, such as `sincVersion`, would silently change the meaning. Allowed
//! are those of the standard's XML schema, a few more that sbe-tool reads, and all of other namespaces.

use super::error::SchemaError;
use super::xml::Element;

const SEMANTIC: &[&str] = &["description", "semanticType"];
const VERSION: &[&str] = &["sinceVersion", "deprecated"];
const PLACE: &[&str] = &["offset", "presence"];
const TIME: &[&str] = &["epoch", "timeUnit"];

/// `None` for an unknown element, which is reported elsewhere.
fn allowed(element: &str) -> Option<[&'static [&'static str]; 5]> {
    let own: &[&str] = match element {
        "messageSchema" => {
            const OWN: &[&str] = &["package", "id", "version", "semanticVersion", "byteOrder", "headerType"];
            return Some([OWN, SEMANTIC, &[], &[], &[]]);
        }
        "types" => return Some([&["package"], &[], &[], &[], &[]]),
        "include" => return Some([&["href", "parse"], &[], &[], &[], &[]]),
        "validValue" | "choice" => return Some([&["name"], SEMANTIC, VERSION, &[], &[]]),
        "message" => return Some([&["name", "id", "blockLength"], SEMANTIC, VERSION, &[], &[]]),
        "group" => return Some([&["name", "id", "blockLength", "dimensionType"], SEMANTIC, VERSION, &[], &[]]),
        "type" => {
            &["name", "primitiveType", "length", "nullValue", "minValue", "maxValue", "characterEncoding", "valueRef"]
        }
        "composite" => &["name"],
        "enum" => &["name", "encodingType", "nullValue"],
        "set" => &["name", "encodingType"],
        "ref" => &["name", "type"],
        "field" => &["name", "id", "type", "valueRef"],
        "data" => &["name", "id", "type", "characterEncoding"],
        _ => return None,
    };
    Some([own, SEMANTIC, VERSION, PLACE, TIME])
}

pub(crate) fn check(element: &Element<'_>) -> Result<(), SchemaError> {
    if let Some(allowed) = allowed(element.name()) {
        let known = || allowed.iter().copied().flatten().copied();
        for attribute in element.node.attributes().filter(|attribute| attribute.namespace().is_none()) {
            let name = attribute.name();
            if known().any(|known| known == name) {
                continue;
            }
            let problem = format!("<{}> has an unknown attribute {name:?}", element.name());
            let expected = match known().find(|known| known.eq_ignore_ascii_case(name)) {
                Some(near) => format!("an attribute of SBE; did you mean {near:?}?"),
                None => format!("one of {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(element.at(attribute.range().start).error(problem, expected));
        }
    }
    element.children().try_for_each(|child| check(&child))
}
