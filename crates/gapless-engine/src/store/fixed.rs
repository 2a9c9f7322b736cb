//! `store_object!`: makes a plain struct of fixed-length fields an object.

use super::error::ObjectError;

/// Field of a `store_object!` struct: integers, `bool`, floats, and arrays of them.
pub trait FixedField: Copy {
    /// Bytes.
    const LENGTH: usize;
    /// Value in objects written before the field existed.
    const EMPTY: Self;
    /// Little-endian.
    fn put(&self, out: &mut Vec<u8>);
    #[inline(always)]
    fn put_all(fields: &[Self], out: &mut Vec<u8>) {
        fields.iter().for_each(|field| field.put(out));
    }
    /// `bytes` have [`FixedField::LENGTH`]; `None` if they are no valid value.
    fn take(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl FixedField for $number {
            const LENGTH: usize = size_of::<$number>();
            const EMPTY: Self = 0 as $number;

            #[inline(always)]
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn take(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

numbers!(i8, i16, u16, i32, u32, i64, u64, i128, u128, f32, f64);

impl FixedField for u8 {
    const LENGTH: usize = 1;
    const EMPTY: Self = 0;

    #[inline(always)]
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    /// Texts and identifiers are byte arrays.
    #[inline(always)]
    fn put_all(fields: &[Self], out: &mut Vec<u8>) {
        out.extend_from_slice(fields);
    }

    #[inline(always)]
    fn take(bytes: &[u8]) -> Option<Self> {
        bytes.first().copied()
    }
}

impl FixedField for bool {
    const LENGTH: usize = 1;
    const EMPTY: Self = false;

    #[inline(always)]
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    #[inline(always)]
    fn take(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl<F: FixedField, const N: usize> FixedField for [F; N] {
    const LENGTH: usize = N * F::LENGTH;
    const EMPTY: Self = [F::EMPTY; N];

    #[inline(always)]
    fn put(&self, out: &mut Vec<u8>) {
        F::put_all(self, out);
    }

    #[inline(always)]
    fn take(bytes: &[u8]) -> Option<Self> {
        let mut fields = Self::EMPTY;
        for (field, bytes) in fields.iter_mut().zip(bytes.chunks_exact(F::LENGTH.max(1))) {
            *field = F::take(bytes)?;
        }
        Some(fields)
    }
}

/// Returns [`FixedField::EMPTY`] past the end of an older version's object.
#[doc(hidden)]
#[inline(always)]
pub fn next_field<F: FixedField>(rest: &mut &[u8], is_older: bool, name: &'static str) -> Result<F, ObjectError> {
    if is_older && rest.is_empty() {
        return Ok(F::EMPTY);
    }
    let Some((bytes, behind)) = rest.split_at_checked(F::LENGTH) else {
        return Err(ObjectError::Invalid(format!("{name} needs {} bytes, only {} are left", F::LENGTH, rest.len())));
    };
    *rest = behind;
    F::take(bytes).ok_or_else(|| ObjectError::Invalid(format!("{name}: the bytes are no value of its type")))
}

/// Declares a struct of fixed-length fields and implements [`StoreObject`](crate::store::StoreObject) for it. The
/// encoding has the fields in order, little-endian, without gaps. A new version may append fields: objects of older
/// versions are read with zeros there, and patches by older versions still apply.
///
/// ```
/// # mod gapless { pub use gapless_engine::{store, store_object}; }
/// gapless::store_object! {
///     /// An account.
///     #[derive(Debug, PartialEq)]
///     pub struct Account = 1, version 2 {
///         /// In cents.
///         pub balance: i64,
///         pub owner: [u8; 24],
///         /// Since version 2.
///         pub is_closed: bool,
///     }
/// }
///
/// use gapless::store::StoreObject;
/// let mut bytes = Vec::new();
/// Account { balance: 7, owner: [0; 24], is_closed: true }.encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 33);
/// assert_eq!(Account::decode(1, &bytes[..32])?.is_closed, false);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! store_object {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident = $type:literal, version $version:literal {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $field_type:ty,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $field_type,)+
        }

        impl $crate::store::StoreObject for $name {
            const TYPE: u64 = $type;
            const VERSION: u16 = $version;

            #[inline]
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) -> ::std::result::Result<(), $crate::store::ObjectError> {
                out.reserve(0 $(+ <$field_type as $crate::store::FixedField>::LENGTH)+);
                $($crate::store::FixedField::put(&self.$field, out);)+
                Ok(())
            }

            #[inline]
            fn decode(version: u16, bytes: &[u8]) -> ::std::result::Result<Self, $crate::store::ObjectError> {
                let is_older = version < Self::VERSION;
                let mut rest = bytes;
                let object = Self {
                    $($field: $crate::store::fixed::next_field(&mut rest, is_older, stringify!($field))?,)+
                };
                if rest.is_empty() {
                    return Ok(object);
                }
                let reason = format!("{} bytes behind the last field of {}", rest.len(), stringify!($name));
                Err($crate::store::ObjectError::Invalid(reason))
            }
        }
    };
}
