/// A stable, machine-readable reason such as `apple.audience_mismatch`: what logs, metrics and tests name.
///
/// The form is `room.reason` in snake case. Codes are statics on extensions of this type, next to the code that throws them.
public struct ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: StaticString) { rawValue = "\(value)" }

    public var description: String { rawValue }
}
