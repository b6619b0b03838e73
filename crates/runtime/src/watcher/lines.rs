//! The lines of a watch, out of chunks that end anywhere.

use bytes::Bytes;

/// Splits a stream of chunks into lines.
///
/// A line that lies within a chunk is a slice of it; only one that goes over the end of a chunk is
/// copied, once.
#[derive(Debug)]
pub(super) struct Lines {
    /// What came and was not looked at.
    rest: Bytes,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// How long a line may be.
    limit: usize,
}

/// A line is longer than the limit, which is this many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of the watch is longer than {0} bytes")]
pub(super) struct TooLong(usize);

// === impl Lines ===

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            rest: Bytes::new(),
            begun: Vec::new(),
            limit,
        }
    }

    /// Takes in a chunk. All complete lines of those before must have been taken out.
    pub(super) fn push(&mut self, chunk: Bytes) {
        debug_assert!(
            self.rest.is_empty(),
            "a chunk comes when there is no line left"
        );
        self.rest = chunk;
    }

    /// The next line without its end; `None` if it is not complete. Empty lines are skipped.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        while let Some(end) = memchr::memchr(b'\n', &self.rest) {
            let mut line = self.rest.split_to(end + 1);
            line.truncate(end);
            if self.begun.len() + line.len() > self.limit {
                return Err(TooLong(self.limit));
            }
            if !self.begun.is_empty() {
                self.begun.extend_from_slice(&line);
                line = std::mem::take(&mut self.begun).into();
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        if self.begun.len() + self.rest.len() > self.limit {
            return Err(TooLong(self.limit));
        }
        self.begun.extend_from_slice(&self.rest);
        self.rest.clear();
        Ok(None)
    }

    /// What is left when no more chunks come: the beginning of a line, or a last one without an end.
    pub(super) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.begun).into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, TooLong};
    use bytes::Bytes;

    /// The lines out of these chunks, and what is left.
    fn split(chunks: &[&'static str], limit: usize) -> Result<Vec<Bytes>, TooLong> {
        let mut lines = Lines::new(limit);
        let mut all = Vec::new();
        for chunk in chunks {
            lines.push(Bytes::from_static(chunk.as_bytes()));
            while let Some(line) = lines.next()? {
                all.push(line);
            }
        }
        all.push(lines.finish());
        Ok(all)
    }

    #[test]
    fn chunks_end_anywhere() {
        let text = "ab\n\ncde\nf\n \r\n";
        for first in 0..text.len() {
            for second in first..text.len() {
                let chunks = [&text[..first], &text[first..second], &text[second..]];
                let lines = split(&chunks, 3).unwrap();
                assert_eq!(lines, ["ab", "cde", "f", ""], "{chunks:?}");
            }
        }
    }

    #[test]
    fn last_line_without_an_end() {
        assert_eq!(split(&["ab\nc", "d"], 9).unwrap(), ["ab", "cd"]);
    }

    #[test]
    fn long_lines_are_refused_whole_and_in_parts() {
        for chunks in [&["abcd\n"][..], &["ab", "cd\n"], &["ab", "cd"], &["abcd"]] {
            assert_eq!(split(chunks, 3), Err(TooLong(3)), "{chunks:?}");
        }
    }

    #[test]
    fn line_within_a_chunk_is_not_copied() {
        let chunk = Bytes::from_static(b"ab\ncd\n");
        let mut lines = Lines::new(9);
        lines.push(chunk.clone());
        lines.next().unwrap();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line.as_ptr(), chunk[3..].as_ptr());
    }
}
