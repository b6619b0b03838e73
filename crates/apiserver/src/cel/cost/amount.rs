use std::ops::{Add, Mul};

/// A size or a number of steps: the least and the most. What does not fit is the largest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// 2 to the power of 64.
const BEYOND: f64 = 18_446_744_073_709_551_616.0;

// === impl Amount ===

impl Amount {
    pub(crate) const ZERO: Self = Self::fixed(0);
    /// Anything, and any number of it.
    pub(crate) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(crate) const fn fixed(number: u64) -> Self {
        Self {
            min: number,
            max: number,
        }
    }

    /// From the lesser least to the larger most.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// So many parts of it, rounded up.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self {
            min: scaled(self.min, factor),
            max: scaled(self.max, factor),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the same inexact numbers as a server's, and a limit before the way back"
)]
fn scaled(number: u64, factor: f64) -> u64 {
    let number = number as f64;
    if number > 0.0 && factor > 0.0 && number > BEYOND / factor {
        return u64::MAX;
    }
    let product = (number * factor).ceil();
    if product >= BEYOND {
        u64::MAX
    } else {
        product as u64
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }
}

impl Mul for Amount {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }
}
