/// A stable, machine-readable reason such as `apple.audience_mismatch`, as logs, metrics and tests name it.
///
/// The form is `module.reason` in snake case. Codes are static members in extensions of this type, declared next to
/// the code that throws them.
@frozen
public struct ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: StaticString) { rawValue = "\(value)" }

    public var description: String { rawValue }
}
