//! Attributes of serde that change the encoding. Those that postcard does not support would otherwise fail only when
//! the first message is sent.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Token};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AttributePlace {
    Type,
    Variant,
    Field,
}

#[derive(Default)]
pub struct SerdeAttributes {
    pub renamed: String,
    pub is_skipped: bool,
    pub has_default: bool,
    /// First attribute that replaces the encoding of the type.
    pub replaced: Option<(String, proc_macro2::Span)>,
}

const UNSAID: &str = "postcard does not say what it holds, so this cannot be read back; leave it out, or send the value as bytes of \
                      JSON";
const POSITIONAL: &str = "postcard tells fields apart by their position, so each must be written and read always";

pub fn read(attributes: &[Attribute], place: AttributePlace) -> syn::Result<SerdeAttributes> {
    let mut found = SerdeAttributes::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| found.take(&meta, place))?;
    }
    Ok(found)
}

impl SerdeAttributes {
    fn take(&mut self, meta: &ParseNestedMeta<'_>, place: AttributePlace) -> syn::Result<()> {
        use syn::spanned::Spanned;
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "flatten" | "untagged" | "tag" | "content" => return Err(meta.error(UNSAID)),
            "skip_serializing_if" | "skip_serializing" | "skip_deserializing" => return Err(meta.error(POSITIONAL)),
            "skip" if place == AttributePlace::Variant => return Err(meta.error(POSITIONAL)),
            "skip" => self.is_skipped = true,
            "default" => self.has_default = true,
            "rename" if meta.input.peek(Token![=]) => {
                self.renamed.push_str(&format!(" as {:?}", meta.value()?.parse::<LitStr>()?.value()));
                return Ok(());
            }
            "rename_all" | "rename_all_fields" if meta.input.peek(Token![=]) => {
                self.renamed.push_str(&format!(" {name}={}", meta.value()?.parse::<LitStr>()?.value()));
                return Ok(());
            }
            "rename" | "rename_all" | "rename_all_fields" => {
                return Err(meta.error("a name must be the same in both directions"));
            }
            "with" | "serialize_with" | "deserialize_with" | "from" | "try_from" | "into" | "remote" | "getter" => {
                self.replaced.get_or_insert_with(|| (name.clone(), meta.path.span()));
            }
            _ => {}
        }
        skip_value(meta)
    }
}

fn skip_value(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<syn::Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let inner;
        syn::parenthesized!(inner in meta.input);
        inner.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}
