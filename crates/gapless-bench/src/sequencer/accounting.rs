//! Checks, outside every clock, that every node has seen exactly the journal.

use gapless_load::sequencer::protocol::MessageAccount;
use gapless_measure::Row;

/// A late joiner has not seen the end, so its sum is not compared.
pub(super) fn verify_accounts(
    row: &mut Row,
    expected: &[u64],
    nodes: &[(&str, &MessageAccount)],
    journal: Option<&MessageAccount>,
) {
    let mut wrong = Vec::new();
    let (mut lost, mut duplicated) = (0, 0);
    let named = nodes.iter().copied().chain(journal.map(|journal| ("the journal", journal)));
    for (name, account) in named.clone() {
        let missing: u64 =
            account.seen.iter().zip(expected).map(|(seen, expected)| expected.saturating_sub(*seen)).sum();
        let too_many: u64 =
            account.seen.iter().zip(expected).map(|(seen, expected)| seen.saturating_sub(*expected)).sum();
        lost += account.lost + missing;
        duplicated += account.duplicated + too_many;
        if account.lost + missing + account.duplicated + too_many + account.wrong > 0 {
            wrong.push(format!(
                "{name}: {} lost, {} doubled, {} wrong",
                account.lost + missing,
                account.duplicated + too_many,
                account.wrong
            ));
        }
    }
    let mut sums = named.map(|(_, account)| account.checksum);
    if let Some(first) = sums.next()
        && sums.any(|sum| sum != first)
    {
        wrong.push("not all have seen the same messages in the same order".to_owned());
    }
    row.lost = Some(lost);
    row.duplicated = Some(duplicated);
    row.verified = Some(wrong.is_empty());
    row.notes.append(&mut wrong);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(seen: &[u64], checksum: u64) -> MessageAccount {
        MessageAccount { seen: seen.to_vec(), checksum, ..MessageAccount::default() }
    }

    #[test]
    fn equal_complete_accounts_verify() {
        let mut row = Row::default();
        let (one, journal) = (account(&[5, 5], 9), account(&[5, 5], 9));
        verify_accounts(&mut row, &[5, 5], &[("node 1", &one), ("node 2", &one)], Some(&journal));
        assert_eq!((row.verified, row.lost, row.duplicated), (Some(true), Some(0), Some(0)));
        assert!(row.notes.is_empty());
    }

    #[test]
    fn missing_or_wrong_messages_are_named() {
        let mut row = Row::default();
        let (one, two) = (account(&[5, 4], 9), account(&[5, 5], 8));
        verify_accounts(&mut row, &[5, 5], &[("node 1", &one), ("node 2", &two)], None);
        assert_eq!((row.verified, row.lost), (Some(false), Some(1)));
        assert!(row.notes[0].starts_with("node 1: 1 lost") && row.notes[1].contains("order"), "{:?}", row.notes);
    }
}
