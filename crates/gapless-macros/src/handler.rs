//! [`Handler`]: one method of a `#[service]`, and its kind.

use proc_macro2::Span;
use syn::{Attribute, Ident, Type};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerKind {
    Command,
    Query,
    Timer,
    Event,
}

impl HandlerKind {
    pub fn of(mark: &Attribute) -> Option<Self> {
        let all = [Self::Command, Self::Query, Self::Timer, Self::Event];
        all.into_iter().find(|kind| mark.path().is_ident(kind.name()))
    }

    /// Name of the attribute, and of the function that registers the handler.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Query => "query",
            Self::Timer => "timer",
            Self::Event => "event",
        }
    }

    /// The name with its article.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Command => "a command",
            Self::Query => "a query",
            Self::Timer => "a timer",
            Self::Event => "an event",
        }
    }

    pub const fn changes_state(self) -> bool {
        !matches!(self, Self::Query)
    }

    pub const fn has_answer(self) -> bool {
        matches!(self, Self::Command | Self::Query)
    }

    pub const fn receiver(self) -> &'static str {
        match self {
            Self::Query => "`&self` is expected: a query reads the state, and its changes would be lost",
            _ => "`&mut self` is expected",
        }
    }

    pub const fn context(self) -> &'static str {
        match self {
            Self::Query => "`&QueryContext` is expected",
            _ => "`&mut Context<'_>` is expected",
        }
    }
}

pub(crate) struct Handler {
    pub kind: HandlerKind,
    /// Attributes `cfg`, which decide whether the method exists.
    pub conditions: Vec<Attribute>,
    pub documentation: Vec<Attribute>,
    pub method: Ident,
    pub message: Type,
    pub has_context: bool,
    pub is_result: bool,
    /// Place of errors about its types.
    pub place: Span,
}
