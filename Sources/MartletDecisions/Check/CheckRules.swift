package import MartletConfig
package import MartletCore
package import MartletRouter

/// How the endpoint for checks responds, as a configuration says it: compiled and immutable.
package final class CheckRules: Sendable {
    /// A header that only the gateway may set.
    private struct Name: Sendable {
        /// In lower case, with the colon.
        package let start: [UInt8]
        /// The line of an empty field.
        package let line: [UInt8]

        package init(_ name: String) {
            start = Array(name.lowercased().utf8) + [UInt8(ascii: ":")]
            line = Array("\(name):\r\n".utf8)
        }

        /// Whether one of complete lines begins with the name.
        package func isIn(_ lines: Span<UInt8>) -> Bool {
            var index = 0
            while index < lines.count {
                if begins(lines, at: index) { return true }
                while index < lines.count, lines[index] != 0x0A { index += 1 }
                index += 1
            }
            return false
        }

        /// Whether a line that begins at `index` is of this header.
        package func begins(_ lines: Span<UInt8>, at index: Int) -> Bool {
            var matched = 0
            while matched < start.count, index + matched < lines.count,
                CheckRules.lowered(lines[index + matched]) == start[matched]
            {
                matched += 1
            }
            return matched == start.count
        }
    }

    /// The index of the endpoint's mount.
    package let mount: Int
    /// The same of the endpoint for checks by gRPC; `nil` without one.
    package let callMount: Int?
    /// The path of the endpoint.
    package let endpoint: [UInt8]
    /// The marks of every check.
    package let marks: CheckMarks
    private let names: [Name]

    /// - Parameters:
    ///   - mount: the index of the endpoint's mount in `routes`.
    ///   - callMount: the same of the endpoint for checks by gRPC.
    ///   - endpoint: its path.
    ///   - assertionHeader: the header of the signed assertion; `nil` without one.
    package init(
        _ routes: RouteTable, mount: Int, callMount: Int? = nil, endpoint: String,
        _ configuration: ForwardAuthConfiguration, assertionHeader: String?
    ) {
        (self.mount, self.callMount) = (mount, callMount)
        self.endpoint = Array(endpoint.utf8)
        var marks = CheckMarks.isCheck
        if configuration.deniesAlike { marks.insert(.deniesAlike) }
        if configuration.redirectsBrowsers { marks.insert(.redirectsBrowsers) }
        self.marks = marks
        var seen: Set<String> = []
        names = routes.identityNames(assertionHeader: assertionHeader)
            .filter { seen.insert($0.lowercased()).inserted }.map { Name($0) }
    }

    /// Appends an empty field for each header that only the gateway may set and that `headers` does not have, so that
    /// none of the client's passes a proxy that replaces only what it gets.
    package func appendMissing(_ headers: Span<UInt8>, to out: inout ByteBuffer) {
        for name in names where !name.isIn(headers) { out.append(name.line) }
    }

    /// A letter in lower case; other bytes stay.
    package static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Whether a line is a header that only the gateway may set.
    package func isReserved(_ line: Span<UInt8>) -> Bool {
        for name in names where name.begins(line, at: 0) { return true }
        return false
    }
}

extension RouteTable {
    /// The names of all identity headers that any route may set, as the configuration spells them.
    func identityNames(assertionHeader: String?) -> [String] {
        HeaderInjection.defaultNames + [assertionHeader ?? "X-Auth-Assertion"] + injections.flatMap(\.names)
    }
}
