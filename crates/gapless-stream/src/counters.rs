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
            ///
            /// No room, or a label that is taken.
            pub fn add_to(counters: &gapless_agent::Counters) -> Result<Self, gapless_agent::Error> {
                Ok(Self { $($field: counters.add($label)?,)+ })
            }
        }
    };
}

pub(crate) use counters;
