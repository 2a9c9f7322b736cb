//! The generator: an SBE schema in, Rust and `.proto` out.
//!
//! Build scripts call [`build`], the command line calls [`generate`] and [`check`], others use [`Generator`].

mod attributes;
mod choices;
mod composites;
mod emit;
pub mod error;
mod model;
mod names;
mod proto;
mod read;
mod types;
mod values;
mod versions;
mod xml;

use std::path::{Path, PathBuf};

pub use error::SchemaError;

use model::Schema;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Derived from the file name.
    pub module: String,
    pub rust: String,
    /// Empty without a protobuf form.
    pub proto: String,
    /// One line for people.
    pub summary: String,
    pub files: Vec<PathBuf>,
}

/// Turns schemas into Rust.
///
/// ```
/// use gapless_schema::generate::Generator;
/// let schema = r#"<messageSchema package="ping" id="7" version="0">
///   <types>
///     <composite name="messageHeader">
///       <type name="blockLength" primitiveType="uint16"/>
///       <type name="templateId" primitiveType="uint16"/>
///       <type name="schemaId" primitiveType="uint16"/>
///       <type name="version" primitiveType="uint16"/>
///     </composite>
///   </types>
///   <message name="Ping" id="1"><field name="at" id="1" type="uint64"/></message>
/// </messageSchema>"#;
/// let generated = Generator::new().schema_text("ping.xml", schema).generate()?;
/// assert!(generated.rust.contains("pub struct PingEncoder<'a>"));
/// assert!(generated.proto.contains("optional uint64 at = 1;"));
/// # Ok::<(), gapless_schema::generate::SchemaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    path: PathBuf,
    text: Option<String>,
    module: Option<String>,
    runtime: String,
    has_protobuf: bool,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            text: None,
            module: None,
            runtime: "::gapless_schema".to_owned(),
            has_protobuf: true,
        }
    }
}

impl Generator {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn schema_file(mut self, path: impl AsRef<Path>) -> Self {
        self.path = path.as_ref().to_owned();
        self.text = None;
        self
    }

    /// `name` appears in errors, and its folder is the base of includes.
    #[must_use]
    pub fn schema_text(mut self, name: impl AsRef<Path>, text: impl Into<String>) -> Self {
        self.path = name.as_ref().to_owned();
        self.text = Some(text.into());
        self
    }

    /// Names the module; by default the name is derived from the file's.
    #[must_use]
    pub fn module(mut self, name: impl Into<String>) -> Self {
        self.module = Some(name.into());
        self
    }

    /// Path of this crate in generated code, `::gapless_schema` by default.
    ///
    /// # Panics
    /// If it is not a path of Rust.
    #[must_use]
    pub fn runtime(mut self, path: &str) -> Self {
        assert!(syn::parse_str::<syn::Path>(path).is_ok(), "the runtime {path:?} is not a path of Rust");
        self.runtime = path.to_owned();
        self
    }

    /// Lifts the limits of protobuf's field numbers: an SBE id may then be anything from 0 to 65535.
    #[must_use]
    pub const fn without_protobuf(mut self) -> Self {
        self.has_protobuf = false;
        self
    }

    /// Reads and checks the schema, and generates the code.
    ///
    /// # Errors
    /// The first fault in the schema.
    pub fn generate(&self) -> Result<Generated, SchemaError> {
        let (schema, files) = self.read()?;
        let module = module_name(&self.module.clone().unwrap_or_else(|| stem(&self.path)));
        Ok(Generated {
            rust: emit::rust(&schema, &module, &self.runtime, self.has_protobuf),
            proto: if self.has_protobuf { proto::proto(&schema) } else { String::new() },
            summary: summary(&schema),
            module,
            files,
        })
    }

    /// Returns the summary.
    ///
    /// # Errors
    /// The first fault in the schema.
    pub fn check(&self) -> Result<String, SchemaError> {
        self.read().map(|(schema, _)| summary(&schema))
    }

    /// In a build script: writes `OUT_DIR/<name of the file>.rs` and `.proto`, for [`crate::include_schema`].
    ///
    /// # Errors
    /// A fault in the schema, or a file that cannot be written.
    ///
    /// # Panics
    /// If `OUT_DIR` is not set, that is, outside of a build script.
    pub fn build(&self) -> Result<(), SchemaError> {
        let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("OUT_DIR is set by cargo for build scripts"));
        // Before the schema is read, so that a corrected one is read again.
        println!("cargo::rerun-if-changed={}", self.path.display());
        let generated = self.generate()?;
        for file in &generated.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        let stem = stem(&self.path);
        write(&folder.join(format!("{stem}.rs")), &generated.rust)?;
        if self.has_protobuf {
            write(&folder.join(format!("{stem}.proto")), &generated.proto)?;
        }
        Ok(())
    }

    /// Writes `<name>.rs`, and `<name>.proto` if there is a protobuf form; returns a message to print.
    ///
    /// # Errors
    /// A fault in the schema, or a file that cannot be written.
    pub fn generate_into(&self, folder: &Path) -> Result<String, SchemaError> {
        let generated = self.generate()?;
        std::fs::create_dir_all(folder).map_err(|source| SchemaError::File {
            file: folder.to_owned(),
            expected: "a folder that can be written",
            source,
        })?;
        let rust = folder.join(format!("{}.rs", generated.module));
        write(&rust, &generated.rust)?;
        let mut said = format!("{}: wrote {}", generated.summary, rust.display());
        if self.has_protobuf {
            let proto = folder.join(format!("{}.proto", generated.module));
            write(&proto, &generated.proto)?;
            said.push_str(&format!(" and {}", proto.display()));
        }
        Ok(said)
    }

    fn read(&self) -> Result<(Schema, Vec<PathBuf>), SchemaError> {
        let sources = match &self.text {
            Some(text) => xml::load_text(&self.path, text.clone())?,
            None => xml::load(&self.path)?,
        };
        let schema = read::schema(&sources)?;
        if self.has_protobuf {
            proto::check(&schema)?;
        }
        Ok((schema, sources.iter().map(|source| PathBuf::from(&source.name)).collect()))
    }
}

/// [`Generator::build`] of a schema file.
///
/// # Errors
/// A fault in the schema, or a file that cannot be written.
///
/// # Panics
/// If `OUT_DIR` is not set, that is, outside of a build script.
pub fn build(schema: impl AsRef<Path>) -> Result<(), SchemaError> {
    Generator::new().schema_file(schema).build()
}

/// For the command line: generates `<name>.rs` and `<name>.proto` in `folder`; returns a message to print.
///
/// # Errors
/// A fault in the schema, or a file that cannot be written.
pub fn generate(schema: &Path, folder: &Path) -> Result<String, SchemaError> {
    Generator::new().schema_file(schema).generate_into(folder)
}

/// For the command line: checks a schema; returns a message to print.
///
/// # Errors
/// A fault in the schema.
pub fn check(schema: &Path) -> Result<String, SchemaError> {
    Generator::new().schema_file(schema).check().map(|summary| format!("{}: {summary}", schema.display()))
}

fn write(path: &Path, text: &str) -> Result<(), SchemaError> {
    std::fs::write(path, text).map_err(|source| SchemaError::File {
        file: path.to_owned(),
        expected: "a file that can be written",
        source,
    })
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "schema".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Invalid characters become underscores.
fn module_name(name: &str) -> String {
    let name = name.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
    let name = if names::snake(&name).is_empty() { "schema" } else { &name };
    names::NameScope::default().claim_method(name)
}

fn summary(schema: &Schema) -> String {
    let count = schema.messages.len();
    let names: Vec<_> = schema.messages.iter().map(|message| message.name.as_str()).take(8).collect();
    let more = if count > names.len() { ", …" } else { "" };
    format!(
        "schema {:?}, id {}, version {}: {count} {} ({}{more})",
        schema.package,
        schema.id,
        schema.version,
        if count == 1 { "message" } else { "messages" },
        names.join(", "),
    )
}
