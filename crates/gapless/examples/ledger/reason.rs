use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! reasons {
    ($($name:ident, $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State)]
        pub enum Reason {
            $(#[doc = $text] $name,)*
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

reasons! {
    LineTooLong, "line too long";
    LineEmpty, "empty line";
    NotUtf8, "not UTF-8";
    Quoting, "bad quoting";
    ColumnsMissing, "missing columns";
    ColumnsSurplus, "too many columns";
    IdMalformed, "malformed id";
    AccountMalformed, "malformed account";
    ReceiverMissing, "no receiver";
    AmountMalformed, "malformed amount";
    AmountNegative, "negative amount";
    AmountZero, "zero amount";
    AmountOverflow, "amount too large";
    SameAccount, "sender is receiver";
    IdDuplicate, "duplicate id";
    SenderUnknown, "unknown sender";
    ReceiverUnknown, "unknown receiver";
    FundsInsufficient, "insufficient funds";
    BalanceOverflow, "balance too large";
}
