//! Reads the `<enum>`s and `<set>`s of a schema.

use std::collections::HashMap;
use std::rc::Rc;

use super::error::SchemaError;
use super::model::{Choice, EnumType, EnumValue, NumberValue, SetType};
use super::names::NameScope;
use super::types::{EncodedType, SchemaType, TypeTable};
use super::values::{notes, number_in, parse_number};
use super::xml::Element;

impl<'d> TypeTable<'d> {
    pub(super) fn enumeration(&mut self, element: &Element<'d>, name: &str) -> Result<Rc<EnumType>, SchemaError> {
        let encoding = self.encoding_type(element)?;
        let primitive = encoding.primitive;
        if primitive.is_float() {
            let place = element.attribute_location("encodingType");
            return Err(place.error("an enum of floating point numbers", "char or an integer type"));
        }
        let null = match element.attribute("nullValue") {
            Some(text) => parse_number(primitive, text, &element.attribute_location("nullValue"), "nullValue")?,
            None => encoding.null,
        };
        let mut names = NameScope::default();
        let mut values: Vec<EnumValue> = Vec::new();
        let (mut seen, mut numbers) = (HashMap::new(), HashMap::new());
        for child in element.children() {
            if child.name() != "validValue" {
                return Err(child.error(format!("<{}> in <enum>", child.name()), "<validValue>"));
            }
            let value_name = child.symbol()?;
            let number = parse_number(primitive, child.text(), &child.location(), "the value")?;
            number_in(number, encoding.min, encoding.max, &child.location(), "the value")?;
            let NumberValue::Integer(integer) = number else {
                return Err(child.error("the value is not an integer", "an integer"));
            };
            if number == null {
                return Err(child.error(format!("value {value_name:?} is the null value"), "another number"));
            }
            let index = values.len();
            let (by_name, by_number) = (seen.insert(value_name.clone(), index), numbers.insert(integer, index));
            if let Some(other) = by_name.or(by_number).map(|index| &values[index]) {
                return Err(child.error(
                    format!("value {value_name:?} = {integer} repeats {:?} = {}", other.name, other.number),
                    "names and numbers that differ",
                ));
            }
            let rust = names.claim_variant(&value_name);
            values.push(EnumValue { rust, name: value_name, number: integer, notes: notes(&child)? });
        }
        if values.is_empty() {
            return Err(element.error(format!("enum {name:?} has no values"), "at least one <validValue>"));
        }
        let rust = self.rust_names.claim_type(name);
        let notes = notes(element)?;
        let of = Rc::new(EnumType { name: name.to_owned(), rust, primitive, null, notes, values });
        self.enums.push(of.clone());
        Ok(of)
    }

    pub(super) fn set(&mut self, element: &Element<'d>, name: &str) -> Result<Rc<SetType>, SchemaError> {
        let primitive = self.encoding_type(element)?.primitive;
        if !primitive.is_unsigned() {
            let place = element.attribute_location("encodingType");
            return Err(place.error("a set of another type", "uint8, uint16, uint32 or uint64"));
        }
        let mut names = NameScope::default();
        let bits = primitive.size() as u32 * 8;
        let mut choices: Vec<Choice> = Vec::new();
        for child in element.children() {
            if child.name() != "choice" {
                return Err(child.error(format!("<{}> in <set>", child.name()), "<choice>"));
            }
            let choice_name = child.symbol()?;
            let bit = match child.text().parse::<u32>() {
                Ok(bit) if bit < bits => bit,
                _ => {
                    let expected = format!("the number of a bit, 0 to {}", bits - 1);
                    return Err(child.error(format!("choice {choice_name:?} is {:?}", child.text()), expected));
                }
            };
            for other in &choices {
                if other.name == choice_name || other.bit == bit {
                    return Err(child.error(
                        format!("choice {choice_name:?} = {bit} repeats {:?} = {}", other.name, other.bit),
                        "names and bits that differ",
                    ));
                }
            }
            let rust = names.claim_choice(&choice_name);
            choices.push(Choice { rust, name: choice_name, bit, notes: notes(&child)? });
        }
        let rust = self.rust_names.claim_type(name);
        let of = Rc::new(SetType { name: name.to_owned(), rust, primitive, notes: notes(element)?, choices });
        self.sets.push(of.clone());
        Ok(of)
    }

    fn encoding_type(&mut self, element: &Element<'d>) -> Result<Rc<EncodedType>, SchemaError> {
        let name = element.required("encodingType")?;
        let resolved = self.named(name, element, "encodingType")?;
        match resolved {
            SchemaType::Encoded(encoded) if encoded.length == 1 && encoded.constant.is_none() => Ok(encoded),
            _ => Err(element.attribute_location("encodingType").error(
                format!("the encoding type {name:?} is not a single number"),
                "a primitive type or such a <type>",
            )),
        }
    }
}
