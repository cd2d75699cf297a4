/// A position in a configuration file.
@frozen public struct SourceLocation: Sendable, Hashable, CustomStringConvertible {
    public let file: String
    /// From 1.
    public let line: Int
    /// From 1, in characters.
    public let column: Int

    public init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }

    /// Of what is in no file.
    static let none = SourceLocation(file: "", line: 0, column: 0)

    public var description: String { "\(file):\(line):\(column)" }
}

/// A value with its position in the file.
@frozen public struct Located<Value> {
    public let value: Value
    public let location: SourceLocation

    public init(_ value: Value, at location: SourceLocation) {
        self.value = value
        self.location = location
    }
}

extension Located<String> {
    /// What a required text is before it was read.
    static let unread = Located("", at: .none)
}

extension Located: Sendable where Value: Sendable {}

/// Positions do not take part in equality.
extension Located: Equatable where Value: Equatable {
    public static func == (left: Located, right: Located) -> Bool { left.value == right.value }
}

extension Located: Hashable where Value: Hashable {
    public func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
