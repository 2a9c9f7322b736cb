//! Names of the routes on which a process receives notices of a type.

use crate::route_name::HIDDEN_PREFIX;
#[cfg(not(loom))]
use crate::route_name::ROUTE_NAME_LENGTH_MAX;

const FIRST: &str = "notices/";

#[cfg(not(loom))]
pub(crate) fn of(process_id: u32, started_ns: u64, type_name: &str) -> String {
    // Begins with a character that is always valid there, whatever the type's name.
    let mut route = format!("{HIDDEN_PREFIX}{FIRST}{process_id}.{started_ns:x}/_");
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
    let allowed = type_name.chars().map(|letter| if is_allowed(letter) { letter } else { '-' });
    let room = ROUTE_NAME_LENGTH_MAX - route.len();
    route.extend(allowed.take(room));
    route
}

#[cfg(not(loom))]
pub(crate) fn is_one(route: &str) -> bool {
    route.strip_prefix(HIDDEN_PREFIX).is_some_and(|rest| rest.starts_with(FIRST))
}

pub(crate) fn receiver(route: &str) -> Option<(u32, &str)> {
    let (process, notice) = route.strip_prefix(HIDDEN_PREFIX)?.strip_prefix(FIRST)?.split_once("/_")?;
    Some((process.split_once('.')?.0.parse().ok()?, notice))
}

#[cfg(test)]
mod tests {
    #[test]
    fn receiver_is_parsed() {
        let route = super::of(16562, 0x118d_cad3, "shop::Progress<u8>");
        assert_eq!(super::receiver(&route), Some((16562, "shop--Progress-u8-")));
        assert_eq!(super::receiver("shop/notices/1.2/_Progress"), None);
        assert!(super::is_one(&route) && !super::is_one(".bridge") && !super::is_one("notices/1.2/_Progress"));
    }
}
