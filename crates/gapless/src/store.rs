//! The state of a [`StateService`](crate::service::StateService): typed objects in collections, changed by transactions.
//!
//! ```
//! use gapless::store::{StoreLimits, Store};
//!
//! gapless::store_object! {
//!     pub struct Account = 1, version 1 {
//!         pub balance: i64,
//!     }
//! }
//!
//! let mut store = Store::new(StoreLimits::default());
//! let accounts = store.map::<u64, Account>(1, "accounts");
//!
//! let mut changes = Vec::new();
//! let mut transaction = store.begin();
//! transaction.insert(accounts, 7, Account { balance: 100 });
//! transaction.commit(&mut changes)?;
//!
//! // A transaction that is dropped has never been.
//! store.begin().remove(accounts, &7);
//! assert_eq!(store.get(accounts, &7).expect("it is there").balance, 100);
//!
//! // The bytes of a transaction make the same state elsewhere.
//! let mut copy = Store::new(StoreLimits::default());
//! copy.map::<u64, Account>(1, "accounts");
//! copy.apply(&changes)?;
//! assert_eq!(copy.state_hash(), store.state_hash());
//! # Ok::<(), gapless::store::StoreError>(())
//! ```

pub use gapless_engine::store::{
    ByteKey, Counter, InlineMessage, Map, ObjectError, OrderedMap, Queue, Singleton, Store, StoreError, StoreKey,
    StoreLimits, StoreObject, Transaction,
};
