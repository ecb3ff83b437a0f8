//! Reads a file in pieces that can be counted one by one.

use std::io::{self, Read};
use std::mem;

use crate::words;

/// What a reader reads before it hands it on: enough that a message is cheap against it, and little
/// enough that all that are on their way at once fit into a cache.
pub(crate) const CHUNK: usize = 64 * 1024;

/// A zero byte in this part makes a file binary. It lies in the first chunk.
const HEAD: usize = 8 * 1024;

/// How reading a file ended, unless by an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it was handed on.
    Complete,
    /// It looks binary, and nothing of it was handed on.
    Binary,
    /// Whoever gets the chunks wants no more.
    Refused,
}

/// Reads all of `source` and hands it on in chunks that end between words, until `hand_on` says
/// `false`.
///
/// A chunk is no longer than [`CHUNK`], unless a single word is.
///
/// # Errors
///
/// Fails as reading does. What was read before the error has been handed on.
pub(crate) fn read(
    mut source: impl Read,
    accept_binary: bool,
    mut hand_on: impl FnMut(Vec<u8>) -> bool,
) -> io::Result<End> {
    let mut chunk = vec![0; CHUNK];
    // The part of `chunk` that is already read: the beginning of a word that the last one cut.
    let mut filled = 0;
    let mut is_first = true;
    loop {
        let (read, result) = fill(&mut source, &mut chunk[filled..]);
        filled += read;

        if mem::take(&mut is_first) && !accept_binary {
            let head = &chunk[..filled.min(HEAD)];
            if head.contains(&0) {
                return Ok(End::Binary);
            }
        }
        if filled < chunk.len() {
            // The end of the file, or an error.
            chunk.truncate(filled);
            let accepted = chunk.is_empty() || hand_on(chunk);
            result?;
            return Ok(if accepted {
                End::Complete
            } else {
                End::Refused
            });
        }
        match words::last_boundary(&chunk) {
            Some(end) => {
                let rest = chunk.len() - end;
                let mut next = vec![0; CHUNK.max(2 * rest)];
                next[..rest].copy_from_slice(&chunk[end..]);
                chunk.truncate(end);
                if !hand_on(mem::replace(&mut chunk, next)) {
                    return Ok(End::Refused);
                }
                filled = rest;
            }
            // One word fills all of it: go on until it ends.
            None => chunk.resize(2 * chunk.len(), 0),
        }
    }
}

/// Reads until `buffer` is full, or there is an error, or the source ends. Returns how much it has
/// read in any case.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Counts;

    fn chunks_of(source: impl Read, accept_binary: bool) -> (Vec<Vec<u8>>, io::Result<End>) {
        let mut chunks = Vec::new();
        let end = read(source, accept_binary, |chunk| {
            chunks.push(chunk);
            true
        });
        (chunks, end)
    }

    /// Bytes without a pattern; about one in `rarity` is a blank, all others are letters.
    fn text(len: usize, rarity: u64) -> Vec<u8> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 32
        };
        (0..len)
            .map(|_| {
                if next() % rarity == 0 {
                    b' '
                } else {
                    b'a' + (next() % 3) as u8
                }
            })
            .collect()
    }

    /// A source that gives a few bytes at a time, and an error at its end.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let limit = buffer.len().min(1000);
            self.0.read(&mut buffer[..limit])
        }
    }

    #[test]
    fn an_empty_file_has_no_chunks() {
        let (chunks, end) = chunks_of(&b""[..], false);
        assert!(chunks.is_empty());
        assert_eq!(end.unwrap(), End::Complete);
    }

    #[test]
    fn chunks_are_the_file_and_cut_no_word() {
        for len in [1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 17] {
            for rarity in [2, 7, 5_000, 60_000, 500_000] {
                let text = text(len, rarity);
                let (chunks, end) = chunks_of(&text[..], false);
                assert_eq!(end.unwrap(), End::Complete);
                assert!(chunks.concat() == text, "{len} {rarity}");

                let mut counts = Counts::default();
                for mut chunk in chunks {
                    counts.add_text(&mut chunk);
                }
                let mut expected = Counts::default();
                expected.add_text(&mut text.clone());
                assert!(counts.all() == expected.all(), "{len} {rarity}");
            }
        }
    }

    #[test]
    fn only_long_words_make_long_chunks() {
        let (chunks, _) = chunks_of(&text(10 * CHUNK, 100)[..], false);
        assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK));
    }

    #[test]
    fn a_word_may_be_longer_than_a_chunk() {
        let word = vec![b'x'; 3 * CHUNK];
        let (chunks, end) = chunks_of(&word[..], false);
        assert_eq!(end.unwrap(), End::Complete);
        assert!(chunks == [word]);
    }

    #[test]
    fn a_zero_byte_in_the_head_is_binary_unless_accepted() {
        for place in [0, HEAD - 1] {
            let mut file = text(2 * CHUNK, 5);
            file[place] = 0;
            let (chunks, end) = chunks_of(&file[..], false);
            assert_eq!((chunks.len(), end.unwrap()), (0, End::Binary));

            let (chunks, end) = chunks_of(&file[..], true);
            assert_eq!(end.unwrap(), End::Complete);
            assert!(chunks.concat() == file);
        }
    }

    #[test]
    fn a_zero_byte_behind_the_head_is_not_binary() {
        let mut file = text(2 * CHUNK, 5);
        file[HEAD] = 0;
        let (chunks, _) = chunks_of(&file[..], false);
        assert!(chunks.concat() == file);
    }

    #[test]
    fn short_reads_do_not_matter_and_an_error_keeps_what_was_read() {
        let text = text(2 * CHUNK + 5, 5);
        let (chunks, end) = chunks_of(Trickle(&text), false);
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(chunks.concat() == text);
    }

    #[test]
    fn reading_stops_when_chunks_are_refused() {
        let mut handed_on = 0;
        let end = read(io::repeat(b' '), false, |_| {
            handed_on += 1;
            handed_on < 3
        });
        assert_eq!((handed_on, end.unwrap()), (3, End::Refused));
    }
}
