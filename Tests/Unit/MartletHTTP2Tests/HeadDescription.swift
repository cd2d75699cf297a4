import MartletHTTP

/// All that a request head says, as numbers to compare.
func description(of head: borrowing RequestHead) -> [Int] {
    var numbers = [Int(head.method.rawValue), head.authorization]
    for range in [head.methodText, head.target, head.path, head.query, head.authority, head.upgrade] {
        numbers += [range.start, range.end]
    }
    for flag in [
        head.isAbsoluteForm, head.isAsteriskForm, head.isAuthorityForm, head.isHTTP10, head.keepsAlive,
        head.expectsContinue, head.announcesTrailers,
    ] { numbers.append(flag ? 1 : 0) }
    switch head.framing {
    case .none: numbers.append(-1)
    case .length(let count): numbers.append(count)
    case .chunked: numbers.append(-2)
    case .untilClose: numbers.append(-3)
    }
    for index in 0..<head.fields.count {
        let field = head.fields[index]
        for range in [field.name, field.value, field.line] { numbers += [range.start, range.end] }
        numbers += [Int(field.known.rawValue), Int(field.alias.rawValue)]
        for flag in [field.hasObsText, field.isUnusual, field.isNeverForwarded, field.isConnectionOption] {
            numbers.append(flag ? 1 : 0)
        }
    }
    return numbers
}
