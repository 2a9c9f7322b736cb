//! [`TypeKey`]: the properties of a message type that caller and instance compare, and [`TypeDescription`]: their form
//! on the wire.

use super::difference::RouteShapes;
use super::version::OLDER_MAX;
use super::{Encoding, Message, MessageError, OlderVersion, rewritten};
use std::borrow::Cow;

/// Converts from the version of one fingerprint to that of another.
pub type RewriteFn = fn((u64, u64), &[u8]) -> Result<Vec<u8>, MessageError>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeKey {
    pub name: Cow<'static, str>,
    /// 0 is not compared.
    pub fingerprint: u64,
    pub encoding: Encoding,
    pub version: u32,
    /// Read and written, too; newest first.
    pub older: Vec<OlderVersion>,
    pub functions: TypeFunctions,
}

/// The same for all types of one shape.
#[derive(Clone, Copy, Debug)]
pub enum TypeFunctions {
    Known {
        rewrite: RewriteFn,
        shape: fn() -> String,
    },
    /// A type of another program.
    Described,
}

impl PartialEq for TypeFunctions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TypeFunctions {}

impl std::hash::Hash for TypeFunctions {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl TypeKey {
    #[must_use]
    pub fn of<M: Message>() -> Self {
        Self {
            name: Cow::Borrowed(M::TYPE_NAME),
            fingerprint: M::fingerprint(),
            encoding: M::ENCODING,
            version: M::VERSION,
            older: M::older().into_iter().take(OLDER_MAX).collect(),
            functions: TypeFunctions::Known { rewrite: rewritten::<M>, shape: M::shape },
        }
    }

    #[must_use]
    pub fn described(description: TypeDescription) -> Self {
        let TypeDescription { name, fingerprint, encoding, version } = description;
        let (name, older, functions) = (Cow::Owned(name), Vec::new(), TypeFunctions::Described);
        Self { name, fingerprint, encoding, version, older, functions }
    }

    #[must_use]
    pub fn description(&self) -> TypeDescription {
        let Self { fingerprint, encoding, version, .. } = *self;
        TypeDescription { name: self.name.clone().into_owned(), fingerprint, encoding, version }
    }

    #[must_use]
    pub fn shapes(request: &Self, reply: &Self) -> RouteShapes {
        (request.shape(), reply.shape())
    }

    fn shape(&self) -> String {
        match self.functions {
            TypeFunctions::Known { shape, .. } => shape(),
            TypeFunctions::Described => self.description().to_string(),
        }
    }

    #[must_use]
    pub const fn is_known(&self) -> bool {
        matches!(self.functions, TypeFunctions::Known { .. })
    }

    #[must_use]
    pub const fn rewrite(&self) -> RewriteFn {
        match self.functions {
            TypeFunctions::Known { rewrite, .. } => rewrite,
            TypeFunctions::Described => not_rewritten,
        }
    }

    #[must_use]
    pub fn place_of_older(&self, fingerprint: u64) -> Option<usize> {
        self.older.iter().position(|older| older.fingerprint == fingerprint)
    }
}

fn not_rewritten((from, to): (u64, u64), _bytes: &[u8]) -> Result<Vec<u8>, MessageError> {
    let reason = format!("they are of fingerprint {from:#x}, and are not known here to be made into those of {to:#x}");
    Err(MessageError { type_name: "relayed bytes", reason })
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TypeDescription {
    pub name: String,
    /// 0 is not compared.
    pub fingerprint: u64,
    pub encoding: Encoding,
    pub version: u32,
}

impl std::fmt::Display for TypeDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            0 | 1 => f.write_str(&self.name),
            version => write!(f, "{} v{version}", self.name),
        }
    }
}
