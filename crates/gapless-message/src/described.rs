//! [`TypeKey`]: what a caller and a copy compare of a message's type, and [`TypeDescription`]: what one tells the other of it.

use super::difference::Shapes;
use super::version::OLDER_MAX;
use super::{Encoding, Message, MessageError, OlderVersion, rewritten};
use std::borrow::Cow;

/// Makes of the bytes of a message in the version of one fingerprint those in that of another.
pub type Rewrite = fn((u64, u64), &[u8]) -> Result<Vec<u8>, MessageError>;

/// What a caller and a copy compare of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeKey {
    /// Its name.
    pub name: Cow<'static, str>,
    /// A number that differs when its shape does; 0 is not compared.
    pub fingerprint: u64,
    /// How it is encoded.
    pub encoding: Encoding,
    /// Which version of it this program was built with.
    pub version: u32,
    /// Older versions that it reads and writes, too, the newest first.
    pub older: Vec<OlderVersion>,
    /// What is done with it where its type is not known.
    pub functions: Functions,
}

/// Functions of a type, which are the same for all of one shape.
#[derive(Clone, Copy, Debug)]
pub enum Functions {
    /// Those of a type of this program.
    Known {
        /// [`rewritten`].
        rewrite: Rewrite,
        /// [`Message::shape`].
        shape: fn() -> String,
    },
    /// None: the type is another program's, and known by its description alone.
    Described,
}

impl PartialEq for Functions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Functions {}

impl std::hash::Hash for Functions {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl TypeKey {
    /// That of a message.
    #[must_use]
    pub fn of<M: Message>() -> Self {
        Self {
            name: Cow::Borrowed(M::TYPE_NAME),
            fingerprint: M::fingerprint(),
            encoding: M::ENCODING,
            version: M::VERSION,
            older: M::older().into_iter().take(OLDER_MAX).collect(),
            functions: Functions::Known { rewrite: rewritten::<M>, shape: M::shape },
        }
    }

    /// That of a type that another program has described: no version of it can be made into another here.
    #[must_use]
    pub fn described(description: TypeDescription) -> Self {
        let TypeDescription { name, fingerprint, encoding, version } = description;
        let (name, older, functions) = (Cow::Owned(name), Vec::new(), Functions::Described);
        Self { name, fingerprint, encoding, version, older, functions }
    }

    /// As the other side is told.
    #[must_use]
    pub fn description(&self) -> TypeDescription {
        let Self { fingerprint, encoding, version, .. } = *self;
        TypeDescription { name: self.name.clone().into_owned(), fingerprint, encoding, version }
    }

    /// What both look like; of a type that is not known, what it is called.
    #[must_use]
    pub fn shapes(request: &Self, reply: &Self) -> Shapes {
        (request.shape(), reply.shape())
    }

    fn shape(&self) -> String {
        match self.functions {
            Functions::Known { shape, .. } => shape(),
            Functions::Described => self.description().to_string(),
        }
    }

    /// Whether it is a type of this program.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        matches!(self.functions, Functions::Known { .. })
    }

    /// The function that makes of its bytes those of another version.
    #[must_use]
    pub const fn rewrite(&self) -> Rewrite {
        match self.functions {
            Functions::Known { rewrite, .. } => rewrite,
            Functions::Described => not_rewritten,
        }
    }

    /// The place of an older version among them.
    #[must_use]
    pub fn place_of_older(&self, fingerprint: u64) -> Option<usize> {
        self.older.iter().position(|older| older.fingerprint == fingerprint)
    }
}

/// The [`Rewrite`] of a type that is not known.
fn not_rewritten((from, to): (u64, u64), _bytes: &[u8]) -> Result<Vec<u8>, MessageError> {
    let reason = format!("they are of fingerprint {from:#x}, and are not known here to be made into those of {to:#x}");
    Err(MessageError { type_name: "relayed bytes", reason })
}

/// A type of requests or replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TypeDescription {
    /// Its name.
    pub name: String,
    /// A number that differs when its shape does; 0 is not compared.
    pub fingerprint: u64,
    /// How it is encoded.
    pub encoding: Encoding,
    /// Which version of it, for people.
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
