//! [`TypeKey`]: what a caller and a copy compare of a message's type, and [`TypeDescription`]: what one tells the other of it.

use super::difference::Shapes;
use super::version::OLDER_MAX;
use super::{Encoding, Message, MessageError, OlderVersion, rewritten};

/// Makes of the bytes of a message in the version of one fingerprint those in that of another.
pub type Rewrite = fn((u64, u64), &[u8]) -> Result<Vec<u8>, MessageError>;

/// What a caller and a copy compare of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeKey {
    /// Its name.
    pub name: &'static str,
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
pub struct Functions {
    /// [`rewritten`].
    pub rewrite: Rewrite,
    /// [`Message::shape`].
    pub shape: fn() -> String,
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
            name: M::TYPE_NAME,
            fingerprint: M::fingerprint(),
            encoding: M::ENCODING,
            version: M::VERSION,
            older: M::older().into_iter().take(OLDER_MAX).collect(),
            functions: Functions { rewrite: rewritten::<M>, shape: M::shape },
        }
    }

    /// As the other side is told.
    #[must_use]
    pub fn description(&self) -> TypeDescription {
        let Self { fingerprint, encoding, version, .. } = *self;
        TypeDescription { name: self.name.to_owned(), fingerprint, encoding, version }
    }

    /// What both look like.
    #[must_use]
    pub fn shapes(request: &Self, reply: &Self) -> Shapes {
        ((request.functions.shape)(), (reply.functions.shape)())
    }

    /// The place of an older version among them.
    #[must_use]
    pub fn place_of_older(&self, fingerprint: u64) -> Option<usize> {
        self.older.iter().position(|older| older.fingerprint == fingerprint)
    }
}

/// A type of requests or replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
