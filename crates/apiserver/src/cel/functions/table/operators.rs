//! Operators.

use crate::cel::functions::signature::Function;
use crate::cel::operators;

/// Operators, and the size of what has one.
pub(super) const OPERATORS: &[Function] = &[
    (operators::CONDITIONAL, &[("conditional", "(bool, A, A) A")]),
    (operators::AND, &[("logical_and", "(bool, bool) bool")]),
    (operators::OR, &[("logical_or", "(bool, bool) bool")]),
    (operators::NOT, &[("logical_not", "(bool) bool")]),
    (
        operators::NOT_STRICTLY_FALSE,
        &[("not_strictly_false", "(bool) bool")],
    ),
    (operators::EQUALS, &[("equals", "(A, A) bool")]),
    (operators::NOT_EQUALS, &[("not_equals", "(A, A) bool")]),
    (
        operators::LESS,
        &[
            ("less_bool", "(bool, bool) bool"),
            ("less_int64", "(int, int) bool"),
            ("less_int64_double", "(int, double) bool"),
            ("less_int64_uint64", "(int, uint) bool"),
            ("less_uint64", "(uint, uint) bool"),
            ("less_uint64_double", "(uint, double) bool"),
            ("less_uint64_int64", "(uint, int) bool"),
            ("less_double", "(double, double) bool"),
            ("less_double_int64", "(double, int) bool"),
            ("less_double_uint64", "(double, uint) bool"),
            ("less_string", "(string, string) bool"),
            ("less_bytes", "(bytes, bytes) bool"),
            ("less_timestamp", "(timestamp, timestamp) bool"),
            ("less_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::LESS_EQUALS,
        &[
            ("less_equals_bool", "(bool, bool) bool"),
            ("less_equals_int64", "(int, int) bool"),
            ("less_equals_int64_double", "(int, double) bool"),
            ("less_equals_int64_uint64", "(int, uint) bool"),
            ("less_equals_uint64", "(uint, uint) bool"),
            ("less_equals_uint64_double", "(uint, double) bool"),
            ("less_equals_uint64_int64", "(uint, int) bool"),
            ("less_equals_double", "(double, double) bool"),
            ("less_equals_double_int64", "(double, int) bool"),
            ("less_equals_double_uint64", "(double, uint) bool"),
            ("less_equals_string", "(string, string) bool"),
            ("less_equals_bytes", "(bytes, bytes) bool"),
            ("less_equals_timestamp", "(timestamp, timestamp) bool"),
            ("less_equals_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::GREATER,
        &[
            ("greater_bool", "(bool, bool) bool"),
            ("greater_int64", "(int, int) bool"),
            ("greater_int64_double", "(int, double) bool"),
            ("greater_int64_uint64", "(int, uint) bool"),
            ("greater_uint64", "(uint, uint) bool"),
            ("greater_uint64_double", "(uint, double) bool"),
            ("greater_uint64_int64", "(uint, int) bool"),
            ("greater_double", "(double, double) bool"),
            ("greater_double_int64", "(double, int) bool"),
            ("greater_double_uint64", "(double, uint) bool"),
            ("greater_string", "(string, string) bool"),
            ("greater_bytes", "(bytes, bytes) bool"),
            ("greater_timestamp", "(timestamp, timestamp) bool"),
            ("greater_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::GREATER_EQUALS,
        &[
            ("greater_equals_bool", "(bool, bool) bool"),
            ("greater_equals_int64", "(int, int) bool"),
            ("greater_equals_int64_double", "(int, double) bool"),
            ("greater_equals_int64_uint64", "(int, uint) bool"),
            ("greater_equals_uint64", "(uint, uint) bool"),
            ("greater_equals_uint64_double", "(uint, double) bool"),
            ("greater_equals_uint64_int64", "(uint, int) bool"),
            ("greater_equals_double", "(double, double) bool"),
            ("greater_equals_double_int64", "(double, int) bool"),
            ("greater_equals_double_uint64", "(double, uint) bool"),
            ("greater_equals_string", "(string, string) bool"),
            ("greater_equals_bytes", "(bytes, bytes) bool"),
            ("greater_equals_timestamp", "(timestamp, timestamp) bool"),
            ("greater_equals_duration", "(duration, duration) bool"),
        ],
    ),
    (
        operators::ADD,
        &[
            ("add_bytes", "(bytes, bytes) bytes"),
            ("add_double", "(double, double) double"),
            ("add_duration_duration", "(duration, duration) duration"),
            ("add_duration_timestamp", "(duration, timestamp) timestamp"),
            ("add_timestamp_duration", "(timestamp, duration) timestamp"),
            ("add_int64", "(int, int) int"),
            ("add_list", "(list(A), list(A)) list(A)"),
            ("add_string", "(string, string) string"),
            ("add_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::SUBTRACT,
        &[
            ("subtract_double", "(double, double) double"),
            (
                "subtract_duration_duration",
                "(duration, duration) duration",
            ),
            ("subtract_int64", "(int, int) int"),
            (
                "subtract_timestamp_duration",
                "(timestamp, duration) timestamp",
            ),
            (
                "subtract_timestamp_timestamp",
                "(timestamp, timestamp) duration",
            ),
            ("subtract_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::MULTIPLY,
        &[
            ("multiply_double", "(double, double) double"),
            ("multiply_int64", "(int, int) int"),
            ("multiply_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::DIVIDE,
        &[
            ("divide_double", "(double, double) double"),
            ("divide_int64", "(int, int) int"),
            ("divide_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::MODULO,
        &[
            ("modulo_int64", "(int, int) int"),
            ("modulo_uint64", "(uint, uint) uint"),
        ],
    ),
    (
        operators::NEGATE,
        &[
            ("negate_double", "(double) double"),
            ("negate_int64", "(int) int"),
        ],
    ),
    (
        operators::IN,
        &[
            ("in_list", "(A, list(A)) bool"),
            ("in_map", "(A, map(A, B)) bool"),
        ],
    ),
    (
        operators::INDEX,
        &[
            ("index_list", "(list(A), int) A"),
            ("index_map", "(map(A, B), A) B"),
            (
                "optional_list_index_int",
                "(optional(list(A)), int) optional(A)",
            ),
            (
                "optional_map_index_value",
                "(optional(map(A, B)), A) optional(B)",
            ),
        ],
    ),
    (
        operators::OPTIONAL_INDEX,
        &[
            ("list_optindex_optional_int", "(list(A), int) optional(A)"),
            (
                "optional_list_optindex_optional_int",
                "(optional(list(A)), int) optional(A)",
            ),
            ("map_optindex_optional_value", "(map(A, B), A) optional(B)"),
            (
                "optional_map_optindex_optional_value",
                "(optional(map(A, B)), A) optional(B)",
            ),
        ],
    ),
    (
        operators::MAP_INSERT,
        &[
            ("map_insert_key_value", "(map(A, B), A, B) map(A, B)"),
            ("map_insert_map", "(map(A, B), map(A, B)) map(A, B)"),
        ],
    ),
    (
        "size",
        &[
            ("size_bytes", "(bytes) int"),
            ("bytes_size", "bytes.() int"),
            ("size_list", "(list(A)) int"),
            ("list_size", "list(A).() int"),
            ("size_map", "(map(A, B)) int"),
            ("map_size", "map(A, B).() int"),
            ("size_string", "(string) int"),
            ("string_size", "string.() int"),
        ],
    ),
];
