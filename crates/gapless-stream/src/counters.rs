//! `counters!`: declares an agent's counters as a struct, with the label that users see next to each field.

/// Declares a struct of counters, with the labels that users see, and `add_to`, its constructor.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$of_field:meta])* $field:ident: $label:literal,)+ }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$of_field])* pub $field: gapless_agent::Counter,)+
        }

        impl $name {
            /// Adds the counters.
            ///
            /// # Errors
            /// No room, or a label that is taken.
            pub fn add_to(counters: &gapless_agent::Counters) -> Result<Self, gapless_agent::Error> {
                Ok(Self { $($field: counters.add($label)?,)+ })
            }
        }
    };
}

/// Declares a struct of counters whose labels begin with a prefix that `add_to` gets.
macro_rules! prefixed_counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$of_field:meta])* $field:ident: $label:literal,)+ }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$of_field])* pub $field: gapless_agent::Counter,)+
        }

        impl $name {
            /// Adds the counters to `counters`, with `prefix` before their labels.
            ///
            /// # Errors
            /// No room, or a label that is taken.
            pub fn add_to(counters: &gapless_agent::Counters, prefix: &str) -> Result<Self, gapless_agent::Error> {
                Ok(Self { $($field: counters.add(&format!("{prefix}{}", $label))?,)+ })
            }
        }
    };
}

pub(crate) use counters;
pub(crate) use prefixed_counters;
