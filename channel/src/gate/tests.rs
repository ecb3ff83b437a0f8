//! The gate alone.

use super::*;
use crate::flavor::{Mpmc, Mpsc};

#[test]
fn fields_do_not_touch_each_other() {
    let gate = Gate::<Mpsc>::new(3);
    let head = AtomicU64::new(0);
    assert_eq!(
        gate.claim_permits(2, &head),
        Claim::Claimed {
            position: 0,
            wake: false
        }
    );
    assert_eq!(
        gate.try_claim(&head),
        Claim::Claimed {
            position: 0,
            wake: false
        }
    );
    assert_eq!(gate.try_claim(&head), Claim::Full);
    assert_eq!(gate.claim_simply(&head), Simply::Not, "permits are out");
    assert_eq!(gate.load().permits(), 2);
    assert_eq!(gate.load().tail(), 1);
    let _ = gate.set_parked();
    assert_eq!(
        gate.claim_with_permit(),
        Claim::Claimed {
            position: 1,
            wake: true
        }
    );
    assert_eq!(gate.load().used(0), 3);
    assert_eq!(gate.return_permits(1).0.permits(), 0);
}

#[test]
fn a_grant_to_the_first_clears_waiting_with_the_last() {
    let gate = Gate::<Mpsc>::new(3);
    let head = AtomicU64::new(0);
    let _ = gate.claim_permits(1, &head);
    let _ = gate.set_waiting();
    gate.grant_to_first(1, 0, false);
    assert_eq!(gate.load().permits(), 2);
    assert!(gate.load().has(WAITING));
    gate.grant_to_first(1, 0, true);
    assert_eq!(gate.load(), Word(3 * PERMIT_ONE));
}

#[test]
fn positions_wrap() {
    let gate = Gate::<Mpsc>::new(2);
    gate.word
        .store(POSITION_MASK << TAIL_SHIFT, Ordering::Relaxed);
    gate.limit
        .store(POSITION_MASK << TAIL_SHIFT, Ordering::Relaxed);
    let head = AtomicU64::new(POSITION_MASK);
    // The limit is an old one, and is looked up.
    for position in [POSITION_MASK, 0] {
        let claimed = Simply::Claimed {
            position,
            wake: false,
        };
        assert_eq!(gate.claim_simply(&head), claimed);
    }
    assert_eq!(gate.claim_simply(&head), Simply::Full);
    assert_eq!(gate.try_claim(&head), Claim::Full);
    assert_eq!(gate.load().used(POSITION_MASK), 2);
}

#[test]
fn room_below_a_limit_is_counted_without_flags_and_permits() {
    for capacity in [1, 2, 5, MAX_CAPACITY as u64] {
        let gate = Gate::<Mpsc>::new(capacity);
        for head in [0, 1, POSITION_MASK - 1, POSITION_MASK] {
            for used in [0, 1, capacity - 1, capacity] {
                let tail = head.wrapping_add(used) & POSITION_MASK;
                for below in [0, WAITING, TAIL_ONE - 1] {
                    let word = Word((tail << TAIL_SHIFT) | below);
                    for count in 1..=3 {
                        let room = used + count <= capacity;
                        assert_eq!(word.has_room_below(gate.limit(head), count), room);
                    }
                }
            }
        }
    }
}

#[test]
fn closed_is_final() {
    let gate = Gate::<Mpsc>::new(1);
    let head = AtomicU64::new(0);
    assert!(!gate.close(CLOSED));
    assert_eq!(gate.try_claim(&head), Claim::Closed);
    let _ = gate.set_waiting();
    gate.clear_waiting(&head);
    assert!(gate.load().has(CLOSED));
    assert_eq!(gate.claim_permits(1, &head), Claim::Closed);
}

#[test]
fn the_last_permit_of_a_closed_channel_wakes_the_receiver() {
    let gate = Gate::<Mpsc>::new(2);
    let head = AtomicU64::new(0);
    let _ = gate.claim_permits(2, &head);
    assert!(!gate.close(CLOSED));
    let _ = gate.set_parked();
    assert!(!gate.return_permits(1).1);
    assert!(gate.return_permits(1).1);
}

/// Gates with one word, for the short way and the long way: where the short way answers, it is as the long one.
fn short_ways_are_the_long_ones<F: Flavor>(word: Word, limit: u64, capacity: u64, head: u64) {
    let pair = || {
        let gates = [(); 2].map(|()| Gate::<F>::new(capacity));
        for gate in &gates {
            gate.word.store(word.0, Ordering::Relaxed);
            gate.limit.store(limit, Ordering::Relaxed);
        }
        (gates, AtomicU64::new(head))
    };
    let what = format!("word {:x}, capacity {capacity}, head {head:x}", word.0);
    let ([short, long], head) = pair();
    let simply = short.claim_simply(&head);
    let claim = long.claim(&head);
    match simply {
        Simply::Claimed { position, wake } => {
            assert_eq!(claim, Claim::Claimed { position, wake }, "{what}");
            assert_eq!(short.load(), long.load(), "{what}");
        }
        Simply::Full => assert_eq!(claim, Claim::Full, "{what}"),
        Simply::Not => {}
    }
    if !matches!(simply, Simply::Claimed { .. }) {
        assert_eq!(short.load(), word, "{what}");
    }
    for count in (1..=capacity).take(6) {
        let ([short, long], head) = pair();
        let full = short.is_surely_full(count, &head);
        let simply = short.claim_permits_simply(count, &head);
        let claim = long.claim_permits(count, &head);
        match simply {
            Simply::Claimed { .. } => assert!(matches!(claim, Claim::Claimed { .. }), "{what}"),
            Simply::Full => assert_eq!(claim, Claim::Full, "{what}"),
            Simply::Not => assert_eq!(claim, Claim::Closed, "{what}"),
        }
        assert_eq!(short.load(), long.load(), "{what}");
        assert!(!full || claim == Claim::Full, "{what}");
    }
    for count in 1..=word.permits() {
        let ([short, long], _) = pair();
        if short.return_permits_simply(count) {
            let (after, wake) = long.return_permits(count);
            assert!(!wake && !after.has(WAITING), "{what}");
            assert_eq!(short.load(), after, "{what}");
        } else {
            assert_eq!(short.load(), word, "{what}");
        }
        let ([short, long], _) = pair();
        match short.claim_with_permit_simply() {
            Some((position, wake)) => {
                let claimed = Claim::Claimed { position, wake };
                assert_eq!(long.claim_with_permit(), claimed, "{what}");
                assert_eq!(short.load(), long.load(), "{what}");
            }
            None => assert_eq!(short.load(), word, "{what}"),
        }
    }
}

#[test]
fn short_ways_answer_as_the_long_ones_in_any_state() {
    for capacity in [1, 2, 3, 5, MAX_CAPACITY as u64] {
        // Few are enough where there is room for many.
        let most = capacity.min(5);
        for head in [0, 1, POSITION_MASK - 2, POSITION_MASK - 1, POSITION_MASK] {
            for used in (0..=most).chain((capacity > most).then_some(capacity)) {
                for permits in 0..=used.min(most) {
                    let flags =
                        (0..PERMIT_ONE).filter(|flags| flags & (CLOSED | RX_GONE) != RX_GONE);
                    for flags in flags {
                        let tail = head.wrapping_add(used - permits) & POSITION_MASK;
                        let word = Word((tail << TAIL_SHIFT) | (permits << PERMIT_SHIFT) | flags);
                        // The limit of now, and old ones.
                        for behind in 0..=2 {
                            let seen = head.wrapping_sub(behind).wrapping_add(capacity);
                            let limit = seen << TAIL_SHIFT;
                            short_ways_are_the_long_ones::<Mpsc>(word, limit, capacity, head);
                            short_ways_are_the_long_ones::<Mpmc>(word, limit, capacity, head);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_line_that_has_lasted_long_leaves_no_old_limit() {
    let capacity = 2;
    // As when it began: nobody has looked at the head since, but the tail has come half around.
    for passed in [1 << 35, (1 << 35) + 1, (1 << 36) - 5] {
        let head = AtomicU64::new(passed - capacity);
        let word = Word((passed << TAIL_SHIFT) | WAITING);
        let gate = Gate::<Mpsc>::new(capacity);
        gate.word.store(word.0, Ordering::Relaxed);
        gate.clear_waiting(&head);
        assert_eq!(gate.claim_simply(&head), Simply::Full);
        assert_eq!(gate.claim_permits_simply(1, &head), Simply::Full);
        let gate = Gate::<Mpsc>::new(capacity);
        gate.end_line_exclusively(word, gate.limit(passed - capacity));
        assert_eq!(gate.claim_simply(&head), Simply::Full);
        assert_eq!(gate.claim_permits_simply(1, &head), Simply::Full);
    }
}
