//! The core of a member: consensus itself, without sockets, files, clocks or randomness.
//!
//! [`Consensus`] wraps raft-rs. Its inputs are received messages, appended frames and persisted polls; its outputs are
//! frames to append, messages to send and sequences to release, as [`Effects`]. The agent that owns it calls it in this
//! order:
//!
//! 1. [`Consensus::tick`] with the time.
//! 2. For each received message: [`wire::decode`], for an append with its frames [`Consensus::verify_append`], then
//!    [`Consensus::step`], then [`Consensus::poll`] and its effects.
//! 3. On the leader: append what publishers sent, [`Consensus::propose`] it as one [`Batch`].
//! 4. [`Consensus::poll`]: cut, append frames and records, send messages, release.
//! 5. [`Consensus::persisted`] once the frames and records of a poll are as durable as the tier requires.

pub mod change;
pub mod core;
pub mod details;
pub mod effects;
pub(crate) mod fields;
pub mod members;
pub mod options;
mod raft_form;
pub mod record;
pub mod recovered;
pub mod storage;
pub mod types;
pub mod wire;

pub use self::core::history::{LogDivergence, LogHistory};
pub use self::core::inbound::{AppendError, StepError};
pub use self::core::membership_view::MembershipView;
pub use self::core::status::{ConsensusStatus, FollowerProgress};
pub use self::core::{Consensus, ConsensusError, ProposeError};
pub use change::{ChangeStep, MembershipChange, Transition};
pub use details::{JoiningMember, MemberDetails};
pub use effects::{ConsensusRecord, Effects, MemberRole, OutgoingMessage, PositionFetch, RoleChange};
pub use gapless_wire::chain::Chain;
pub use members::{Members, MembersError};
pub use options::ConsensusOptions;
pub use raft::eraftpb::Message;
pub use recovered::{RecoveredState, RecoveryError, RejoinState};
pub use types::{Batch, LogPosition, MemberId};
