//! `RouteFilter`: a name of a route with `*` for any one part and `**` for the rest.

use gapless_message::route_name::{self, ROUTE_NAME_LENGTH_MAX};
use std::fmt;
use std::str::FromStr;

/// A filter of route names: `*` stands for one part, `**` at the end for one part or more.
///
/// ```
/// use gapless_kafka::route_filter::RouteFilter;
/// let filter: RouteFilter = "shop/**".parse()?;
/// assert!(filter.matches("shop/orders/open") && !filter.matches("shop") && !filter.matches("bank/orders"));
/// # Ok::<(), gapless_kafka::route_filter::BadFilter>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteFilter(String);

/// A text that is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} was found; a route's name is allowed, with * for one of its parts and ** for the rest, such as \"shop/**\""
)]
pub struct BadFilter {
    /// The first characters of the text.
    pub found: String,
}

impl RouteFilter {
    /// Matches a route's name; names of the library itself, with a leading `.`, never match.
    #[must_use]
    pub fn matches(&self, route: &str) -> bool {
        if route_name::check_own(route).is_err() {
            return false;
        }
        let mut parts = route.split('/');
        let mut expected = self.0.split('/');
        loop {
            match (expected.next(), parts.next()) {
                (Some("**"), part) => return part.is_some(),
                (Some("*"), Some(_)) => {}
                (Some(name), Some(part)) if name == part => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

/// True if any filter matches.
#[must_use]
pub fn any_matches(filters: &[RouteFilter], route: &str) -> bool {
    filters.iter().any(|filter| filter.matches(route))
}

impl FromStr for RouteFilter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Self, BadFilter> {
        let bad = || BadFilter { found: text.chars().take(ROUTE_NAME_LENGTH_MAX).collect() };
        let count = text.split('/').count();
        let named = text.split('/').enumerate().map(|(index, part)| match part {
            "*" => "x",
            "**" if index + 1 == count => "x",
            part => part,
        });
        let named = named.collect::<Vec<_>>().join("/");
        route_name::check_own(&named).map_err(|_| bad())?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RouteFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_parts() {
        for (filter, matched, others) in [
            ("shop/price", vec!["shop/price"], vec!["shop", "shop/price/x", "shop/prices"]),
            ("shop/*", vec!["shop/a", "shop/b.c"], vec!["shop", "shop/a/b", "bank/a"]),
            ("*/open", vec!["a/open"], vec!["open", "a/b/open", "a/shut"]),
            ("shop/**", vec!["shop/a", "shop/a/b/c"], vec!["shop", "shops/a"]),
            ("**", vec!["a", "a/b"], vec![".notices/12/main", "", "a//b"]),
        ] {
            let filter: RouteFilter = filter.parse().unwrap();
            assert!(matched.iter().all(|route| filter.matches(route)), "{filter}");
            assert!(!others.iter().any(|route| filter.matches(route)), "{filter}");
        }
    }

    #[test]
    fn other_texts_are_no_filters() {
        for text in ["", "/", "a/**/b", "a*", "***", ".notices/**", "a b", "a/", "../*"] {
            let error = text.parse::<RouteFilter>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} was found; a route's name is allowed")), "{error}");
        }
    }
}
