//! `difference`: the first difference of two shapes, as a sentence, and `title`: name and version of a shape; for the
//! error of two programs with different types.

const SHOWN_MAX: usize = 200;

/// `names` are the names of the sides. A shape that ends with `…` was truncated.
///
/// The texts may come from another process: a malformed shape is shown as it is.
///
/// ```
/// use gapless_message::difference::difference;
///
/// let difference = |ours, theirs| difference((ours, theirs), ("here", "there"));
/// let ours = "Order v2 {id: u64, price: i64}";
/// assert_eq!(
///     difference(ours, "Order v1 {id: u64, price: u32}").unwrap(),
///     "Order.price is i64 here and u32 there"
/// );
/// assert_eq!(difference(ours, "Order v1 {id: u64}").unwrap(), "Order has `price: i64` here alone");
/// ```
#[must_use]
pub fn difference((ours, theirs): (&str, &str), (here, there): (&str, &str)) -> Option<String> {
    if ours == theirs {
        return None;
    }
    if [(ours, theirs), (theirs, ours)]
        .iter()
        .any(|(text, cut)| cut.strip_suffix('…').is_some_and(|cut| text.starts_with(cut)))
    {
        return Some(format!("they differ behind the first {} bytes", ours.len().min(theirs.len())));
    }
    let sides = SideNames { here, there };
    let (our_types, their_types) = (split(ours, "; "), split(theirs, "; "));
    let both = our_types.iter().zip(&their_types).find(|(ours, theirs)| ours != theirs);
    Some(match both {
        Some((ours, theirs)) => sides.of_types(ours, theirs),
        None => sides.alone("the message", (&our_types, &their_types)),
    })
}

/// `Order v2`; an unnamed shape is its own title.
#[must_use]
pub fn title(shape: &str) -> &str {
    let end = shape
        .split_once(" v")
        .map_or(shape.len(), |(name, rest)| name.len() + 2 + rest.bytes().take_while(u8::is_ascii_digit).count());
    &shape[..end]
}

/// Shapes of a route's request and reply.
pub type RouteShapes = (String, String);

/// `Order v2 → u64`.
#[must_use]
pub fn titles((request, reply): &RouteShapes) -> String {
    format!("{} → {}", title(request), title(reply))
}

#[must_use]
pub fn of_calls(caller: &RouteShapes, instance: &RouteShapes) -> String {
    const SIDES: (&str, &str) = ("at the caller", "at the instance");
    let request = difference((&caller.0, &instance.0), SIDES).map(|difference| format!("in the request, {difference}"));
    let reply = || difference((&caller.1, &instance.1), SIDES).map(|difference| format!("in the reply, {difference}"));
    request.or_else(reply).unwrap_or_else(|| "both are alike, but they are different types of the program".to_owned())
}

struct SideNames<'a> {
    here: &'a str,
    there: &'a str,
}

impl SideNames<'_> {
    fn is(&self, what: &str, ours: &str, theirs: &str) -> String {
        format!("{what} is {} {} and {} {}", shown(ours), self.here, shown(theirs), self.there)
    }

    fn alone(&self, whose: &str, (ours, theirs): (&[&str], &[&str])) -> String {
        let (part, side) = match ours.get(theirs.len()) {
            Some(part) => (*part, self.here),
            None => (theirs.get(ours.len()).copied().unwrap_or_default(), self.there),
        };
        format!("{whose} has `{}` {side} alone", shown(part))
    }

    fn of_types(&self, ours: &str, theirs: &str) -> String {
        let (Some(our), Some(their)) = (NamedType::read(ours), NamedType::read(theirs)) else {
            return self.is("the type", ours, theirs);
        };
        if our.name != their.name {
            return self.is("the type", our.head, their.head);
        }
        if our.kind != their.kind {
            return self.is("the type", ours, theirs);
        }
        let name = our.name;
        match our.parts.iter().zip(&their.parts).find(|(ours, theirs)| ours != theirs) {
            Some((ours, theirs)) => match (ours.split_once(": "), theirs.split_once(": ")) {
                (Some((field, ours)), Some((other, theirs))) if field == other && !field.contains(['{', '(']) => {
                    self.is(&format!("{name}.{field}"), ours, theirs)
                }
                _ => self.is(&format!("a part of {name}"), &format!("`{ours}`"), &format!("`{theirs}`")),
            },
            None if our.parts.len() != their.parts.len() => self.alone(name, (&our.parts, &their.parts)),
            None if our.head != their.head => {
                let version = |head: &str| head.strip_prefix(name).unwrap_or(head).trim().to_owned();
                format!("{}, with the same parts", self.is(name, &version(our.head), &version(their.head)))
            }
            None => self.is("the type", ours, theirs),
        }
    }
}

struct NamedType<'a> {
    /// `Order v2`.
    head: &'a str,
    name: &'a str,
    /// Opening bracket, with `enum` if it is one.
    kind: &'a str,
    parts: Vec<&'a str>,
}

impl<'a> NamedType<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (name, _) = text.split_once(" v")?;
        let head = title(text);
        let rest = &text[head.len()..];
        let (kind, inner) = rest.split_at(rest.find(['{', '('])? + 1);
        let end = inner.rfind(['}', ')'])?;
        Some(Self { head, name, kind, parts: split(&inner[..end], ", ") })
    }
}

fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= start && text[at..].starts_with(separator) => {
                parts.push(&text[start..at]);
                start = at + separator.len();
            }
            _ => {}
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(ours: &str, theirs: &str) -> String {
        difference((ours, theirs), ("here", "there")).unwrap()
    }

    #[test]
    fn first_difference_is_named() {
        assert_eq!((title("Order v2 {id: u64}"), title("[u8]")), ("Order v2", "[u8]"));
        let order = "Order v2 {id: u64, lines: [Line]}; Line v1 {price: i64, at: [u8; 3]}";
        for (theirs, expected) in [
            ("Order v1 {id: u64}", "Order has `lines: [Line]` here alone"),
            ("Order v2 {id: u64, lines: [Line], more: u8}", "Order has `more: u8` there alone"),
            ("Order v2 {id: u64, rows: [Line]}", "a part of Order is `lines: [Line]` here and `rows: [Line]` there"),
            (
                "Order v2 {id: u64, lines: [Line]}; Line v1 {price: i64, at: [u8; 4]}",
                "Line.at is [u8; 3] here and [u8; 4] there",
            ),
            (
                "Order v2 {id: u64, lines: [Line]}; Line v3 {price: i64, at: [u8; 3]}",
                "Line is v1 here and v3 there, with the same parts",
            ),
            ("Order v2 {id: u64, lines: [Line]}", "the message has `Line v1 {price: i64, at: [u8; 3]}` here alone"),
            ("Offer v1 {id: u64}", "the type is Order v2 here and Offer v1 there"),
            ("Order v2 enum {A}", "the type is Order v2 {id: u64, lines: [Line]} here and Order v2 enum {A} there"),
            ("u64", "the type is Order v2 {id: u64, lines: [Line]} here and u64 there"),
            ("Order v2 {id: u64, li…", "they differ behind the first 24 bytes"),
        ] {
            assert_eq!(found(order, theirs), expected);
        }
        let event = "Event v1 enum {Opened, Closed {reason: String}, Moved(u32)}";
        for (theirs, expected) in [
            ("Event v1 enum {Opened, Closed {reason: String}}", "Event has `Moved(u32)` here alone"),
            (
                "Event v1 enum {Opened, Closed {reason: u8}, Moved(u32)}",
                "a part of Event is `Closed {reason: String}` here and `Closed {reason: u8}` there",
            ),
        ] {
            assert_eq!(found(event, theirs), expected);
        }
        assert_eq!(difference((event, event), ("here", "there")), None);
    }

    proptest! {
        #[test]
        fn any_texts_have_a_difference(ours in "[a-z0-9 v{}()\\[\\]:;,…]{0,40}", theirs in "\\PC{0,40}") {
            for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours), (&ours, &ours)] {
                prop_assert_eq!(difference((ours, theirs), ("here", "there")).is_none(), ours == theirs);
            }
        }
    }
}
