//! What a rule answers and what it costs at most, found out before there is a value.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators,
};

use super::functions::{self, TYPES};
use super::kind::{Kind, MAX_OBJECT_BYTES};

/// What is known about an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inferred<'a> {
    pub(super) kind: Kind<'a>,
    /// The steps that it takes at most.
    pub(super) cost: u64,
}

/// The variables that can be seen, innermost last.
pub(super) type Scope<'a> = Vec<(String, Kind<'a>)>;

/// Finds out about an expression.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn infer<'a>(
    expression: &IdedExpr,
    scope: &mut Scope<'a>,
) -> Result<Inferred<'a>, String> {
    match &expression.expr {
        Expr::Unspecified => Err("a macro has arguments that it cannot take".to_owned()),
        Expr::Struct(_) => Err("structures cannot be made".to_owned()),
        Expr::Literal(literal) => Ok(Inferred {
            kind: literal_kind(literal),
            cost: 0,
        }),
        Expr::Ident(name) => {
            let mut known = scope.iter().rev();
            let kind = match known.find(|(variable, _)| variable == name) {
                Some((_, kind)) => kind.clone(),
                None if TYPES.contains(&name.as_str()) => Kind::Type,
                None => return Err(format!("undeclared reference to '{name}'")),
            };
            Ok(Inferred { kind, cost: 1 })
        }
        Expr::Select(select) => infer_select(select, scope),
        Expr::List(list) => {
            let elements = infer_all(&list.elements, scope)?;
            let max = elements.len() as u64;
            let cost = total(&elements).saturating_add(max);
            let items = Box::new(one_kind(&elements));
            let kind = Kind::List { items, max };
            Ok(Inferred { kind, cost })
        }
        Expr::Map(map) => {
            let mut cost = 0_u64;
            for entry in &map.entries {
                let EntryExpr::MapEntry(entry) = &entry.expr else {
                    return Err("structures cannot be made".to_owned());
                };
                for part in [&entry.key, &entry.value] {
                    cost = cost.saturating_add(1 + infer(part, scope)?.cost);
                }
            }
            let values = Box::new(Kind::Any);
            let max = map.entries.len() as u64;
            let kind = Kind::Map { values, max };
            Ok(Inferred { kind, cost })
        }
        Expr::Comprehension(comprehension) => infer_loop(comprehension, scope),
        Expr::Call(call) => infer_call(call, scope),
    }
}

fn literal_kind<'a>(literal: &LiteralValue) -> Kind<'a> {
    match literal {
        LiteralValue::Boolean(_) => Kind::Bool,
        LiteralValue::Bytes(_) => Kind::Bytes,
        LiteralValue::Double(_) => Kind::Double,
        LiteralValue::Int(_) => Kind::Int,
        LiteralValue::Null => Kind::Null,
        LiteralValue::String(text) => Kind::Text(text.inner().chars().count() as u64),
        LiteralValue::UInt(_) => Kind::Any,
    }
}

fn infer_all<'a>(
    expressions: &[IdedExpr],
    scope: &mut Scope<'a>,
) -> Result<Vec<Inferred<'a>>, String> {
    let each = expressions.iter();
    each.map(|expression| infer(expression, scope)).collect()
}

fn total(parts: &[Inferred<'_>]) -> u64 {
    let costs = parts.iter().map(|part| part.cost);
    costs.fold(0, u64::saturating_add)
}

/// The type that all have.
fn one_kind<'a>(parts: &[Inferred<'a>]) -> Kind<'a> {
    let Some((first, rest)) = parts.split_first() else {
        return Kind::Any;
    };
    let kinds = rest.iter().map(|part| &part.kind);
    kinds.fold(first.kind.clone(), |kind, other| either(&kind, other))
}

/// The type of a value that is of one type or of another.
fn either<'a>(one: &Kind<'a>, other: &Kind<'a>) -> Kind<'a> {
    match (one, other) {
        (Kind::Text(one), Kind::Text(other)) => Kind::Text(*one.max(other)),
        (
            Kind::List { items, max },
            Kind::List {
                items: others,
                max: most,
            },
        ) => {
            let items = match (max, most) {
                (0, _) => Kind::clone(others),
                (_, 0) => Kind::clone(items),
                _ => either(items, others),
            };
            Kind::List {
                items: Box::new(items),
                max: *max.max(most),
            }
        }
        (one, other) if one == other => one.clone(),
        _ => Kind::Any,
    }
}

fn infer_select<'a>(select: &SelectExpr, scope: &mut Scope<'a>) -> Result<Inferred<'a>, String> {
    let operand = infer(&select.operand, scope)?;
    let cost = operand.cost.saturating_add(1);
    let SelectExpr { field, test, .. } = select;
    let member = operand.kind.member(field);
    let kind = match member {
        Some(_) if *test => Kind::Bool,
        Some(kind) => kind,
        None if matches!(operand.kind, Kind::Object { .. } | Kind::Metadata) => {
            return Err(format!("undefined field '{field}'"));
        }
        None => {
            let name = operand.kind.name();
            return Err(format!("a {name} has no field '{field}'"));
        }
    };
    Ok(Inferred { kind, cost })
}

fn infer_loop<'a>(
    comprehension: &ComprehensionExpr,
    scope: &mut Scope<'a>,
) -> Result<Inferred<'a>, String> {
    let ComprehensionExpr {
        iter_range,
        iter_var,
        iter_var2: _,
        accu_var,
        accu_init,
        loop_cond,
        loop_step,
        result,
    } = comprehension;
    let range = infer(iter_range, scope)?;
    let Some((element, rounds)) = range.kind.elements() else {
        let name = range.kind.name();
        return Err(format!("a {name} has no elements to go through"));
    };
    let init = infer(accu_init, scope)?;
    let depth = scope.len();
    scope.push((iter_var.clone(), element));
    scope.push((accu_var.clone(), init.kind.clone()));
    let condition = infer(loop_cond, scope)?;
    let step = infer(loop_step, scope)?;
    if matches!(init.kind, Kind::Bool) {
        check_bool(&step)?;
    }
    // A list that grows has what the steps add, as often as there are rounds.
    let outcome = match (&init.kind, step.kind) {
        (Kind::List { max: 0, .. }, Kind::List { items, .. }) => Kind::List { items, max: rounds },
        (init, _) => init.clone(),
    };
    scope.truncate(depth);
    scope.push((accu_var.clone(), outcome));
    let result = infer(result, scope)?;
    scope.truncate(depth);
    let round = condition.cost.saturating_add(step.cost);
    let cost = [
        range.cost,
        init.cost,
        rounds.saturating_mul(round),
        result.cost,
    ]
    .into_iter()
    .fold(0, u64::saturating_add);
    Ok(Inferred {
        kind: result.kind,
        cost,
    })
}

fn infer_call<'a>(call: &CallExpr, scope: &mut Scope<'a>) -> Result<Inferred<'a>, String> {
    let name = call.func_name.as_str();
    if let Some(target) = &call.target
        && let Expr::Ident(namespace) = &target.expr
        && functions::is_namespace(namespace)
        && let Some(answer) = functions::answer_of(&format!("{namespace}.{name}"))
    {
        let args = infer_all(&call.args, scope)?;
        return Ok(answered(answer, &args));
    }
    let mut args = Vec::new();
    if let Some(target) = &call.target {
        args.push(infer(target, scope)?);
    }
    args.extend(infer_all(&call.args, scope)?);
    if let Some(outcome) = infer_operator(name, &args)? {
        let cost = total(&args).saturating_add(1 + outcome.cost);
        return Ok(Inferred { cost, ..outcome });
    }
    match functions::answer_of(name) {
        Some(answer) if !args.is_empty() => Ok(answered(answer, &args)),
        Some(_) | None => Err(format!("undeclared reference to '{name}'")),
    }
}

fn answered<'a>(answer: functions::Answer, args: &[Inferred<'a>]) -> Inferred<'a> {
    let sizes = args.iter().map(|arg| arg.kind.size());
    let size = sizes.fold(1, u64::saturating_add);
    Inferred {
        kind: answer.kind(size.saturating_mul(10).min(MAX_OBJECT_BYTES)),
        cost: total(args).saturating_add(size),
    }
}

fn check_bool(inferred: &Inferred<'_>) -> Result<(), String> {
    if inferred.kind.can_be_bool() {
        return Ok(());
    }
    Err(format!("a {} is no bool", inferred.kind.name()))
}

/// The outcome of an operator; its cost is without that of the operands. None if it is no operator.
fn infer_operator<'a>(name: &str, args: &[Inferred<'a>]) -> Result<Option<Inferred<'a>>, String> {
    let kind = match (name, args) {
        (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [one]) => {
            check_bool(one)?;
            Kind::Bool
        }
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [one, other]) => {
            check_bool(one)?;
            check_bool(other)?;
            Kind::Bool
        }
        (operators::CONDITIONAL, [test, one, other]) => {
            check_bool(test)?;
            either(&one.kind, &other.kind)
        }
        (functions::LISTED, [one]) => Kind::List {
            items: Box::new(one.kind.held()),
            max: 1,
        },
        (functions::UNLISTED, [one]) => {
            let held = one.kind.elements().map_or(Kind::Any, |(kind, _)| kind);
            Kind::Optional(Box::new(held))
        }
        _ => return infer_on_values(name, args),
    };
    Ok(Some(Inferred { kind, cost: 0 }))
}

/// The same for the operators whose operands must be of certain types.
fn infer_on_values<'a>(name: &str, args: &[Inferred<'a>]) -> Result<Option<Inferred<'a>>, String> {
    let (kind, cost) = match (name, args) {
        (operators::NEGATE, [one]) => {
            let fits = one.kind.is_number() || one.kind == Kind::Any;
            (fits.then(|| one.kind.clone()), 0)
        }
        (operators::EQUALS | operators::NOT_EQUALS, [one, other]) => {
            let fits = one.kind.fits(&other.kind);
            let cost = one.kind.size().min(other.kind.size());
            (fits.then_some(Kind::Bool), cost)
        }
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            [one, other],
        ) => {
            let numbers = one.kind.is_number() && other.kind.is_number();
            let fits = numbers || one.kind.fits(&other.kind);
            let cost = one.kind.size().min(other.kind.size());
            (fits.then_some(Kind::Bool), cost)
        }
        (operators::IN, [_, container]) => {
            let fits = container.kind.elements().is_some();
            (fits.then_some(Kind::Bool), container.kind.size())
        }
        (operators::INDEX, [operand, _]) => (operand.kind.indexed(), 0),
        (operators::OPT_INDEX, [operand, _]) => {
            let element = operand.kind.indexed();
            (element.map(|kind| Kind::Optional(Box::new(kind))), 0)
        }
        (
            operators::ADD
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO,
            [one, other],
        ) => {
            let cost = one.kind.size().saturating_add(other.kind.size());
            (arithmetic(name, &one.kind, &other.kind), cost)
        }
        _ => return Ok(None),
    };
    if let Some(kind) = kind {
        return Ok(Some(Inferred { kind, cost }));
    }
    let kinds: Vec<&str> = args.iter().map(|arg| arg.kind.name()).collect();
    let kinds = kinds.join(", ");
    Err(format!("no matching overload for '{name}' of ({kinds})"))
}

/// The type of a sum, a difference, a product and so on. None if there is none.
fn arithmetic<'a>(operator: &str, one: &Kind<'a>, other: &Kind<'a>) -> Option<Kind<'a>> {
    let (add, subtract) = (operator == operators::ADD, operator == operators::SUBSTRACT);
    match (one, other) {
        (Kind::Any, _) | (_, Kind::Any) => Some(Kind::Any),
        (Kind::Int, Kind::Int) => Some(Kind::Int),
        (Kind::Double, Kind::Double) if operator != operators::MODULO => Some(Kind::Double),
        (Kind::Text(one), Kind::Text(other)) if add => Some(Kind::Text(one.saturating_add(*other))),
        (Kind::Bytes, Kind::Bytes) if add => Some(Kind::Bytes),
        (Kind::List { max: one_max, .. }, Kind::List { max: other_max, .. }) if add => {
            let (items, _) = either(one, other).elements()?;
            Some(Kind::List {
                items: Box::new(items),
                max: one_max.saturating_add(*other_max),
            })
        }
        (Kind::Duration, Kind::Duration) if add || subtract => Some(Kind::Duration),
        (Kind::Time, Kind::Duration) if add || subtract => Some(Kind::Time),
        (Kind::Duration, Kind::Time) if add => Some(Kind::Time),
        (Kind::Time, Kind::Time) if subtract => Some(Kind::Duration),
        _ => None,
    }
}
