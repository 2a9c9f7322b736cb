//! The numbers are in journals, so they never change their meaning.

use std::fmt;

macro_rules! reasons {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $text] $name = $code,)*
        }

        impl Reason {
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
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
    LineTooLong = 1, "line too long";
    LineEmpty = 2, "empty line";
    NotUtf8 = 3, "not UTF-8";
    Quoting = 4, "bad quoting";
    ColumnsMissing = 5, "missing columns";
    ColumnsSurplus = 6, "too many columns";
    IdMalformed = 7, "malformed id";
    AccountMalformed = 8, "malformed account";
    ReceiverMissing = 9, "no receiver";
    AmountMalformed = 10, "malformed amount";
    AmountNegative = 11, "negative amount";
    AmountZero = 12, "zero amount";
    AmountOverflow = 13, "amount too large";
    SameAccount = 20, "sender is receiver";
    IdDuplicate = 21, "duplicate id";
    SenderUnknown = 22, "unknown sender";
    ReceiverUnknown = 23, "unknown receiver";
    FundsInsufficient = 24, "insufficient funds";
    BalanceOverflow = 25, "balance too large";
}

impl Reason {
    pub const fn code(self) -> u8 {
        self as u8
    }
}
