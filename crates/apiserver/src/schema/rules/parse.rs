//! Reading rules: parsing within limits, macros that the library lacks, and metering.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};
use kube_cel::cel::parser::Parser;

use super::functions::{GROWTH_METER, LISTED, METER, UNLISTED};

/// The variable that holds the budget.
pub(super) const BUDGET: &str = "@budget";

/// What the interpreter's macros call the outcome of a loop while they make it.
const MADE: &str = "@result";

/// How deeply an expression may be nested. Parsing and evaluating recurse.
const MAX_NESTING: usize = 96;

/// The longest rule.
const MAX_RULE_BYTES: usize = 16 * 1024;

/// Parses a rule. What it cannot do: structures, and loops with two variables.
///
/// # Errors
///
/// Why it cannot be read.
pub(super) fn parse(source: &str) -> Result<IdedExpr, String> {
    if source.len() > MAX_RULE_BYTES {
        return Err(format!("a rule has at most {MAX_RULE_BYTES} bytes"));
    }
    if nesting(source) > MAX_NESTING {
        return Err(format!("a rule is nested at most {MAX_NESTING} deep"));
    }
    Parser::new()
        .enable_optional_syntax(true)
        .parse(source)
        .map(|expression| rewrite(expression, &expanded))
        .map_err(|errors| errors.to_string())
}

/// How deeply an expression is nested at most: every bracket and every link of a chain of operators
/// counts. `&&` and `||` do not: the parser balances them.
fn nesting(source: &str) -> usize {
    // The links of the present chain, at each level of brackets.
    let mut levels = vec![0];
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut quote: Option<u8> = None;
    let mut last = b' ';
    for byte in source.bytes() {
        if let Some(open) = quote {
            if byte == open && last != b'\\' {
                quote = None;
            }
        } else {
            let level = levels.last_mut();
            match (byte, level) {
                (b'"' | b'\'', _) => quote = Some(byte),
                (b'(' | b'[' | b'{', _) => {
                    levels.push(0);
                    depth += 1;
                }
                (b')' | b']' | b'}', Some(level)) => {
                    depth = depth.saturating_sub(1 + *level);
                    levels.pop();
                    if let Some(chain) = levels.last_mut() {
                        *chain += 1;
                        depth += 1;
                    }
                }
                (b',', Some(level)) => depth = depth.saturating_sub(std::mem::take(level)),
                (b'&' | b'|', Some(level)) if last == byte => {
                    depth = depth.saturating_sub(std::mem::take(level));
                }
                (
                    b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'<' | b'>' | b'=' | b'?',
                    Some(level),
                ) if !(byte == b'=' && b"=!<>".contains(&last)) => {
                    *level += 1;
                    depth += 1;
                }
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        last = if last == b'\\' && quote.is_some() {
            b' '
        } else {
            byte
        };
    }
    deepest
}

/// The expression with everything that can take long paid for from the budget.
pub(super) fn metered(expression: IdedExpr) -> IdedExpr {
    rewrite(expression, &|IdedExpr { id, expr }| {
        let price = match &expr {
            Expr::Call(call) if is_growth(call) => Some(GROWTH_METER),
            Expr::Call(call) => (!is_cheap(&call.func_name)).then_some(METER),
            Expr::List(list) => (!list.elements.is_empty()).then_some(METER),
            Expr::Map(map) => (!map.entries.is_empty()).then_some(METER),
            Expr::Unspecified
            | Expr::Comprehension(_)
            | Expr::Ident(_)
            | Expr::Literal(_)
            | Expr::Select(_)
            | Expr::Struct(_) => None,
        };
        if let Some(meter) = price {
            return function(meter, vec![ident(BUDGET), IdedExpr { id, expr }]);
        }
        let Expr::Comprehension(mut rounds) = expr else {
            return IdedExpr { id, expr };
        };
        // Looked at once before each round.
        let condition = std::mem::take(&mut rounds.loop_cond);
        rounds.loop_cond = function(METER, vec![ident(BUDGET), condition]);
        let expr = Expr::Comprehension(rounds);
        IdedExpr { id, expr }
    })
}

/// Operators whose outcome is small or a part of what is there already.
fn is_cheap(function: &str) -> bool {
    [
        operators::CONDITIONAL,
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::EQUALS,
        operators::NOT_EQUALS,
        operators::LESS,
        operators::LESS_EQUALS,
        operators::GREATER,
        operators::GREATER_EQUALS,
        operators::IN,
        operators::INDEX,
        operators::OPT_INDEX,
        operators::NOT_STRICTLY_FALSE,
        LISTED,
        UNLISTED,
        "value",
        "hasValue",
    ]
    .contains(&function)
}

/// Whether a call adds to the list that a loop makes.
fn is_growth(call: &CallExpr) -> bool {
    call.func_name == operators::ADD
        && matches!(&call.args[..], [IdedExpr { expr: Expr::Ident(name), .. }, _] if name == MADE)
}

/// Changes every part of an expression, the inner ones first.
fn rewrite(expression: IdedExpr, change: &impl Fn(IdedExpr) -> IdedExpr) -> IdedExpr {
    let inner = |part: IdedExpr| rewrite(part, change);
    let boxed = |part: Box<IdedExpr>| Box::new(rewrite(*part, change));
    let IdedExpr { id, expr } = expression;
    let expr = match expr {
        Expr::Call(mut call) => {
            call.target = call.target.map(boxed);
            call.args = call.args.into_iter().map(inner).collect();
            Expr::Call(call)
        }
        Expr::Comprehension(loops) => {
            let loops = *loops;
            Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: inner(loops.iter_range),
                accu_init: inner(loops.accu_init),
                loop_cond: inner(loops.loop_cond),
                loop_step: inner(loops.loop_step),
                result: inner(loops.result),
                ..loops
            }))
        }
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(inner).collect();
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = inner(std::mem::take(&mut entry.key));
                    entry.value = inner(std::mem::take(&mut entry.value));
                }
            }
            Expr::Map(map)
        }
        Expr::Select(mut select) => {
            select.operand = boxed(select.operand);
            Expr::Select(select)
        }
        leaf @ (Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_)) => leaf,
    };
    change(IdedExpr { id, expr })
}

/// Replaces what the library does not know or does otherwise: `a.?b` becomes `a[?"b"]`, and
/// `optMap` and `optFlatMap` become loops over a list of one element or none. (The interpreter
/// loses the optional around a value when it copies it, so that no variable can hold one.)
fn expanded(expression: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = expression;
    let Expr::Call(mut call) = expr else {
        return IdedExpr { id, expr };
    };
    if call.func_name == operators::OPT_SELECT {
        operators::OPT_INDEX.clone_into(&mut call.func_name);
    }
    let flat = call.func_name == "optFlatMap";
    let is_map = flat || call.func_name == "optMap";
    match (is_map, call.target.take(), &mut call.args[..]) {
        (true, Some(target), [variable, body]) => {
            let Expr::Ident(name) = std::mem::take(&mut variable.expr) else {
                return IdedExpr::default();
            };
            let body = std::mem::take(body);
            let added = if flat {
                function(LISTED, vec![body])
            } else {
                anonymous(Expr::List(ListExpr::new(vec![body])))
            };
            let rounds = anonymous(Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: function(LISTED, vec![*target]),
                iter_var: name,
                iter_var2: None,
                accu_var: MADE.to_owned(),
                accu_init: anonymous(Expr::List(ListExpr::new(Vec::new()))),
                loop_cond: anonymous(Expr::Literal(LiteralValue::Boolean(true.into()))),
                loop_step: function(operators::ADD, vec![ident(MADE), added]),
                result: ident(MADE),
            })));
            function(UNLISTED, vec![rounds])
        }
        (_, target, _) => {
            call.target = target;
            IdedExpr {
                id,
                expr: Expr::Call(call),
            }
        }
    }
}

fn anonymous(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn ident(name: &str) -> IdedExpr {
    anonymous(Expr::Ident(name.to_owned()))
}

fn function(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    anonymous(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    }))
}
