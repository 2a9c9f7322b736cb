//! Username and password, as SoupBinTCP has them.

use gapless_wire::soup::Field;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub username: Field<6>,
    pub password: Field<10>,
}

impl Credentials {
    /// Anonymous access.
    pub const BLANK: Self = Self { username: Field::BLANK, password: Field::BLANK };
}
