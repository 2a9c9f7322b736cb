//! Message headers and the traits of the runtime.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::super::model::MessageModel;
use super::values::size;
use super::{Emitter, ident};

impl Emitter<'_> {
    pub(super) fn message_parse(&self, message: &MessageModel) -> TokenStream {
        let runtime = &self.runtime;
        let header = &self.schema.header;
        let name = &message.name;
        let template_id = message.template_id;
        let length = size(header.length);
        let raw = quote!(header);
        let block_length = self.read_slot(header.block_length, &raw, header.length);
        let template = self.read_slot(header.template_id, &raw, header.length);
        let schema = self.read_slot(header.schema_id, &raw, header.length);
        let version = self.read_slot(header.version, &raw, header.length);
        quote! {
            /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
            /// message are ignored.
            ///
            /// # Errors
            /// The error in the payload and its place.
            #[inline(always)]
            pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
                let mut reader = #runtime::sbe::Reader::new(payload);
                let header = reader.chunk::<#length>(#name)?;
                let header = #runtime::sbe::Header {
                    block_length: #block_length,
                    template_id: #template,
                    schema_id: #schema,
                    version: #version,
                };
                header.expect(#name, SCHEMA_ID, #template_id)?;
                Self::parse_body(&mut reader, header.block_length, header.version)
            }
        }
    }

    pub(super) fn message_traits(&self, message: &MessageModel) -> TokenStream {
        let runtime = &self.runtime;
        let name = &message.name;
        let template_id = message.template_id;
        let of = |suffix: &str| ident(&format!("{}{suffix}", message.level.rust));
        let (object, decoder, encoder) = (of(""), of("Decoder"), of("Encoder"));
        let header_length = size(self.schema.header.length);
        let ids = quote! {
            const SCHEMA_ID: u16 = SCHEMA_ID;
            const TEMPLATE_ID: u16 = #template_id;
            const NAME: &'static str = #name;
        };
        let sbe = quote!(const ENCODING: #runtime::Encoding = #runtime::Encoding::Sbe;);
        let protobuf = self.has_protobuf.then(|| self.protobuf_traits(message, &ids));
        let sbe_direct = self.direct(&encoder, &ids, &sbe, &quote!(#encoder::new(buffer)));
        quote! {
            impl #runtime::MessageSchema for #decoder<'_> {
                #ids
                #sbe
            }

            impl #runtime::Decode for #decoder<'_> {
                type Decoded<'a> = #decoder<'a>;

                #[inline(always)]
                fn decode(payload: &[u8]) -> Result<#decoder<'_>, DecodeError> {
                    #decoder::parse(payload)
                }
            }

            #sbe_direct

            impl #runtime::SbeObject for #object {
                #ids

                fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
                    Self::from_decoder(&#decoder::parse(payload)?)
                }

                fn sbe_length(&self) -> usize {
                    #header_length + self.sbe_body_length()
                }

                fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
                    let mut encoder = #encoder::new(buffer)?;
                    self.encode_into(&mut encoder)?;
                    encoder.finish()
                }
            }

            #protobuf
        }
    }

    fn protobuf_traits(&self, message: &MessageModel, ids: &TokenStream) -> TokenStream {
        let runtime = &self.runtime;
        let of = |suffix: &str| ident(&format!("{}{suffix}", message.level.rust));
        let (object, decoder, encoder) = (of(""), of("ProtobufDecoder"), of("ProtobufEncoder"));
        let protobuf = quote!(const ENCODING: #runtime::Encoding = #runtime::Encoding::Protobuf;);
        let direct = self.direct(&encoder, ids, &protobuf, &quote!(Ok(#encoder::new(buffer))));
        quote! {
            impl #runtime::MessageSchema for #decoder<'_> {
                #ids
                #protobuf
            }

            impl #runtime::Decode for #decoder<'_> {
                type Decoded<'a> = #decoder<'a>;

                #[inline]
                fn decode(payload: &[u8]) -> Result<#decoder<'_>, DecodeError> {
                    Ok(#decoder::new(payload))
                }
            }

            #direct

            impl #runtime::ProtobufObject for #object {
                #ids

                fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
                    let mut object = Self::default();
                    object.merge_protobuf(#decoder::new(payload))?;
                    Ok(object)
                }

                fn protobuf_length(&self) -> usize {
                    let mut encoder = #encoder::new(&mut []);
                    self.encode_protobuf(&mut encoder);
                    encoder.writer.position()
                }

                fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
                    let mut encoder = #encoder::new(buffer);
                    self.encode_protobuf(&mut encoder);
                    encoder.finish()
                }
            }
        }
    }

    fn direct(&self, encoder: &Ident, ids: &TokenStream, encoding: &TokenStream, new: &TokenStream) -> TokenStream {
        let runtime = &self.runtime;
        quote! {
            impl #runtime::MessageSchema for #encoder<'_> {
                #ids
                #encoding
            }

            impl #runtime::Direct for #encoder<'_> {
                type Encoder<'a> = #encoder<'a>;

                #[inline]
                fn encoder(buffer: &mut [u8]) -> Result<#encoder<'_>, EncodeError> {
                    #new
                }

                #[inline]
                fn finish(encoder: #encoder<'_>) -> Result<usize, EncodeError> {
                    encoder.finish()
                }
            }
        }
    }
}
