internal import MartletHTTP

extension BodyFraming {
    /// Whether there is no body.
    var isEmpty: Bool {
        switch self {
        case .none: true
        case .length(let count): count == 0
        case .chunked, .untilClose: false
        }
    }

    /// Whether the length is unknown from the head.
    var isUnbounded: Bool {
        switch self {
        case .none, .length: false
        case .chunked, .untilClose: true
        }
    }

    var isNone: Bool { if case .none = self { true } else { false } }
    var isChunked: Bool { if case .chunked = self { true } else { false } }
    var isUntilClose: Bool { if case .untilClose = self { true } else { false } }
}
