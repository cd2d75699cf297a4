/// One entry of `match.headers` or `match.query`: a condition on a request's own header or parameter.
@frozen package struct RequestConditionConfiguration: Sendable {
    /// Where the value is.
    @frozen package enum Source: String, Sendable { case header, query }

    /// The test of the value.
    @frozen package enum Test: Sendable {
        case equals(String)
        case prefix(String)
        case matches(Located<String>)
        case present(Bool)
    }

    package var source: Source
    package var name: Located<String>
    package var test: Test

    package init(_ source: Source, _ name: Located<String>, _ test: Test) {
        self.source = source
        self.name = name
        self.test = test
    }
}

/// `rewrite:` of a route, without `strip_prefix`.
@frozen package struct RewriteConfiguration: Sendable {
    /// Applied to the path after its prefix was stripped.
    package var expression: Located<String>?
    /// What the path becomes where the expression matches it.
    package var replacement: Located<String>?
    package var addPrefix: Located<String>?
    /// The `Host` of the upstream's requests.
    package var host: String?

    package init() {}

    /// Whether the path, beyond a stripped prefix, or the host changes.
    package var isEmpty: Bool { expression == nil && addPrefix == nil && host == nil }
}

/// One entry of `split:` of a route.
@frozen package struct SplitShare: Sendable {
    package var upstream: Located<String>
    package var weight: Int

    package init(upstream: Located<String>, weight: Int) {
        self.upstream = upstream
        self.weight = weight
    }
}

/// `mirror:` of a route.
@frozen package struct MirrorConfiguration: Sendable {
    /// The upstream that gets copies of requests.
    package var upstream: Located<String>
    package var percentage = SamplePercentage.all

    package init(upstream: Located<String>) { self.upstream = upstream }
}

/// `headers.response:` of a route.
@frozen package struct ResponseHeaderConfiguration: Sendable {
    /// A header with its value, as written.
    @frozen package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var set: [Field] = []
    /// Lower-case names.
    package var remove: [String] = []

    package init() {}

    package var isEmpty: Bool { self.set.isEmpty && remove.isEmpty }
}
