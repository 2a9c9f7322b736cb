//! `counters!`: the counters of an agent, as a struct whose fields stand beside the labels that users see.

/// A struct of counters, and `add_to`, which makes them.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$of_field:meta])* $field:ident: $label:literal,)+ }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$of_field])* pub $field: gapless_agent::Counter,)+
        }

        impl $name {
            /// Adds them to `counters`.
            ///
            /// # Errors
            /// No room, or labels that are taken.
            pub fn add_to(counters: &gapless_agent::Counters) -> Result<Self, gapless_agent::Error> {
                Ok(Self { $($field: counters.add($label)?,)+ })
            }
        }
    };
}

pub(crate) use counters;
