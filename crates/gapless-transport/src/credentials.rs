//! [`Credentials`]: who asks to come in, as SoupBinTCP names it.

use gapless_wire::soup::Field;

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub username: Field<6>,
    /// The password.
    pub password: Field<10>,
}

impl Credentials {
    /// Nobody in particular.
    pub const BLANK: Self = Self { username: Field::BLANK, password: Field::BLANK };
}
