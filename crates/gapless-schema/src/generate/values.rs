//! Reads numbers, offsets and notes in attributes, for all parts of a schema.

use super::error::{Location, SchemaError};
use super::model::{ElementNotes, NumberValue, Primitive};
use super::xml::Element;

/// A char is one ASCII character.
pub(crate) fn parse_number(
    primitive: Primitive,
    text: &str,
    place: &Location,
    what: &str,
) -> Result<NumberValue, SchemaError> {
    let text = text.trim();
    match primitive {
        Primitive::Char => match text.as_bytes() {
            [byte] if byte.is_ascii() => Ok(NumberValue::Integer(i128::from(*byte))),
            _ => Err(place.error(format!("{what} is {text:?}"), "one ASCII character")),
        },
        Primitive::Float | Primitive::Double => {
            // In its own precision, so that it is rounded once.
            let number = match primitive {
                Primitive::Float => text.parse::<f32>().ok().map(f64::from),
                _ => text.parse::<f64>().ok(),
            };
            // A finite number that parses to infinity is out of range.
            let number = number.filter(|number| number.is_finite() || text.contains(['n', 'N']));
            number
                .map(NumberValue::Float)
                .ok_or_else(|| place.error(format!("{what} is {text:?}"), "a floating point number"))
        }
        _ => {
            let (least, greatest) = primitive.integer_range();
            match text.parse::<i128>() {
                Ok(number) if (least..=greatest).contains(&number) => Ok(NumberValue::Integer(number)),
                _ => Err(place.error(format!("{what} is {text:?}"), format!("an integer from {least} to {greatest}"))),
            }
        }
    }
}

pub(crate) fn number_in(
    number: NumberValue,
    min: Option<NumberValue>,
    max: Option<NumberValue>,
    place: &Location,
    what: &str,
) -> Result<(), SchemaError> {
    let below = |a: NumberValue, b: NumberValue| match (a, b) {
        (NumberValue::Integer(a), NumberValue::Integer(b)) => a < b,
        (NumberValue::Float(a), NumberValue::Float(b)) => a < b,
        _ => false,
    };
    if let Some(min) = min.filter(|min| below(number, *min)) {
        return Err(place.error(format!("{what} {number} is below minValue"), format!("at least {min}")));
    }
    if let Some(max) = max.filter(|max| below(*max, number)) {
        return Err(place.error(format!("{what} {number} is above maxValue"), format!("at most {max}")));
    }
    Ok(())
}

pub(crate) fn offset(element: &Element<'_>, end: usize) -> Result<usize, SchemaError> {
    match element.number::<usize>("offset", "a number of bytes")? {
        Some(offset) if offset < end => Err(element
            .attribute_location("offset")
            .error(format!("offset {offset} lies within the field before"), format!("at least {end}"))),
        Some(offset) => Ok(offset),
        None => Ok(end),
    }
}

pub(crate) fn notes(element: &Element<'_>) -> Result<ElementNotes, SchemaError> {
    let text = |name: &str| element.attribute(name).map(str::to_owned);
    Ok(ElementNotes {
        description: text("description"),
        semantic_type: text("semanticType"),
        time_unit: text("timeUnit"),
        epoch: text("epoch"),
        since: element.number("sinceVersion", "a version, from 0")?.unwrap_or(0),
        deprecated: element.number("deprecated", "a version, from 0")?,
        location: element.location(),
    })
}

impl std::fmt::Display for NumberValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(formatter),
            Self::Float(number) => number.fmt(formatter),
        }
    }
}
