/// Where a message's body ends (RFC 9112 §6.3).
@usableFromInline package enum BodyFraming: Sendable, Equatable {
    /// There is no body.
    case none
    /// A body of this many bytes; 0 is an explicit length.
    case length(Int)
    case chunked
    /// Until the connection closes; responses only.
    case untilClose

    // The derived operator is not inlined into other modules.
    @inlinable package static func == (left: BodyFraming, right: BodyFraming) -> Bool {
        switch (left, right) {
        case (.none, .none), (.chunked, .chunked), (.untilClose, .untilClose): true
        case (.length(let count), .length(let other)): count == other
        default: false
        }
    }
}

extension BodyFraming {
    /// Whether there is no body.
    @inlinable package var isEmpty: Bool {
        switch self {
        case .none: true
        case .length(let count): count == 0
        case .chunked, .untilClose: false
        }
    }

    /// Whether the length is unknown from the head.
    @inlinable package var isUnbounded: Bool {
        switch self {
        case .none, .length: false
        case .chunked, .untilClose: true
        }
    }

    @inlinable package var isNone: Bool { if case .none = self { true } else { false } }
    @inlinable package var isChunked: Bool { if case .chunked = self { true } else { false } }
    @inlinable package var isUntilClose: Bool { if case .untilClose = self { true } else { false } }
}
