//! `judge`: the decision on another member's introduction.

use super::wire::{Introduction, LinkRefusal, LinkRefusalCode, MemberIdentity, MemberNumber};

/// Decides whether `own` accepts `theirs`. A field that is 0 (not known yet) on one side is not compared.
///
/// # Errors
/// The refusal, with a text for the other side's log.
pub fn judge(
    own: &MemberIdentity,
    theirs: &Introduction,
    is_member: impl FnOnce(MemberNumber) -> bool,
) -> Result<(), Box<LinkRefusal>> {
    let from = &theirs.from;
    let no = |code, text: String| Err(Box::new(LinkRefusal::new(code, text)));
    // Both sides read the text, so it names each value's owner.
    let differ = |own_value: String, their_value: String| {
        format!("member {} is of {own_value}, member {} of {their_value}", own.member, from.member)
    };
    if from.cluster != own.cluster {
        let [own, from] = [&own.cluster, &from.cluster].map(|cluster| format!("{cluster:?}"));
        return no(LinkRefusalCode::OtherCluster, differ(own, from));
    }
    if from.stream_id != own.stream_id && from.stream_id != 0 && own.stream_id != 0 {
        let [own, from] = [own.stream_id, from.stream_id].map(|stream_id| format!("{stream_id:032x}"));
        return no(LinkRefusalCode::OtherStream, differ(own, from));
    }
    if from.incarnation != own.incarnation && from.incarnation != 0 && own.incarnation != 0 {
        let [own, from] = [own.incarnation, from.incarnation].map(|incarnation| incarnation.to_string());
        return no(LinkRefusalCode::OtherIncarnation, differ(own, from));
    }
    if from.member == own.member {
        return if from.instance == own.instance {
            no(LinkRefusalCode::Itself, format!("member {}", own.member))
        } else {
            no(LinkRefusalCode::DuplicateIdentity, format!("both are member {}", own.member))
        };
    }
    if theirs.to != own.member {
        return no(
            LinkRefusalCode::OtherMember,
            format!("the address is that of member {}, not {}", own.member, theirs.to),
        );
    }
    if !is_member(from.member) {
        return no(
            LinkRefusalCode::UnknownMember,
            format!("member {} does not know member {}", own.member, from.member),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::log_state::LogState;
    use crate::link::wire::ClusterName;

    fn identity(member: MemberNumber) -> MemberIdentity {
        MemberIdentity {
            cluster: ClusterName::new("market").unwrap(),
            stream_id: 5,
            incarnation: 2,
            member,
            instance: member * 10,
        }
    }

    fn verdict(change: impl FnOnce(&mut Introduction)) -> Option<LinkRefusalCode> {
        let mut theirs = Introduction { from: identity(1), to: 2, log: LogState::default() };
        change(&mut theirs);
        judge(&identity(2), &theirs, |member| member == 1).err().map(|refusal| refusal.code)
    }

    #[test]
    fn refusal_names_both_values() {
        let own = MemberIdentity { incarnation: 7, ..identity(1) };
        let from = MemberIdentity { incarnation: 1, ..identity(2) };
        let theirs = Introduction { from, to: 1, log: LogState::default() };
        let refusal = judge(&own, &theirs, |_| true).unwrap_err();
        assert_eq!(refusal.text, "member 1 is of 7, member 2 of 1");
    }

    #[test]
    fn differences_are_refused() {
        assert_eq!(verdict(|_| {}), None);
        assert_eq!(
            verdict(|theirs| theirs.from.cluster = ClusterName::new("Market").unwrap()),
            Some(LinkRefusalCode::OtherCluster)
        );
        assert_eq!(verdict(|theirs| theirs.from.stream_id = 6), Some(LinkRefusalCode::OtherStream));
        assert_eq!(verdict(|theirs| theirs.from.stream_id = 0), None);
        assert_eq!(verdict(|theirs| theirs.from.incarnation = 3), Some(LinkRefusalCode::OtherIncarnation));
        assert_eq!(verdict(|theirs| theirs.from.incarnation = 0), None);
        assert_eq!(verdict(|theirs| theirs.from = identity(2)), Some(LinkRefusalCode::Itself));
        assert_eq!(verdict(|theirs| theirs.from.member = 2), Some(LinkRefusalCode::DuplicateIdentity));
        assert_eq!(verdict(|theirs| theirs.to = 3), Some(LinkRefusalCode::OtherMember));
        assert_eq!(verdict(|theirs| theirs.from.member = 3), Some(LinkRefusalCode::UnknownMember));
    }
}
