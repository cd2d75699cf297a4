import MartletConfig
import MartletTesting
import Testing

@testable import MartletRouter

/// A straightforward reference implementation of matching: recursive globs over arrays of segments, route by route.
struct ReferenceTable {
    struct Entry {
        let hosts: [String]
        let segments: [String]
        let methods: [String]
    }

    let entries: [Entry]

    func match(_ method: String, _ host: String, _ path: String) -> (index: Int?, allowed: Set<String>) {
        let segments = split(path)
        var allowed: Set<String> = []
        for (index, entry) in entries.enumerated() {
            guard entry.hosts.isEmpty || entry.hosts.contains(where: { matches($0, host) }) else { continue }
            guard matches(entry.segments[...], segments[...]) else { continue }
            if entry.methods.isEmpty || entry.methods.contains(method) { return (index, []) }
            if method == "HEAD", entry.methods.contains("GET") { return (index, []) }
            allowed.formUnion(entry.methods)
        }
        if allowed.contains("GET") { allowed.insert("HEAD") }
        return (nil, allowed)
    }

    func split(_ path: String) -> [String] {
        path.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    }

    private func matches(_ pattern: String, _ host: String) -> Bool {
        guard pattern.hasPrefix("*.") else { return host == pattern }
        return host.hasSuffix(pattern.dropFirst(1)) && host.count > pattern.count - 1
    }

    private func matches(_ pattern: ArraySlice<String>, _ path: ArraySlice<String>) -> Bool {
        guard let first = pattern.first else { return path.isEmpty }
        if first == "**" {
            return (0...path.count).contains { matches(pattern.dropFirst(), path.dropFirst($0)) }
        }
        guard let segment = path.first else { return false }
        let fits = first == "*" ? !segment.isEmpty : matches(Array(first)[...], Array(segment)[...])
        return fits && matches(pattern.dropFirst(), path.dropFirst())
    }

    private func matches(_ pattern: ArraySlice<Character>, _ text: ArraySlice<Character>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        if first == "*" { return (0...text.count).contains { matches(pattern.dropFirst(), text.dropFirst($0)) } }
        return text.first == first && matches(pattern.dropFirst(), text.dropFirst())
    }
}

@Suite struct RouteIndexes {
    /// Few words, so that random paths often match random routes.
    private static let words = ["a", "b", "ab", "ba", "aab", "v1", "v2", "users", "orders", ""]
    private static let globs = ["a", "b", "ab", "v1", "users", "orders", "*", "*", "**", "a*", "*b", "a*b", "u*s"]
    private static let hosts = ["x.test", "a.x.test", "b.a.x.test", "y.test", "a.y.test", "z"]
    private static let hostPatterns = ["x.test", "a.x.test", "*.x.test", "*.a.x.test", "y.test", "*.test", "z"]
    private static let methods = ["GET", "HEAD", "POST", "BREW"]

    private func randomPattern(_ random: inout SeededGenerator, _ index: Int) -> String {
        var segments = (0..<Int.random(in: 0...5, using: &random)).map { _ in
            Self.globs[Int.random(in: 0..<Self.globs.count, using: &random)]
        }
        // Most routes of a large table have a unique word.
        if index % 3 != 0 { segments.insert("r\(index % 997)", at: Int.random(in: 0...segments.count, using: &random)) }
        if Int.random(in: 0..<6, using: &random) == 0 || segments.isEmpty { segments.append("") }
        return "/" + segments.joined(separator: "/")
    }

    private func randomPath(_ random: inout SeededGenerator, _ patterns: [String]) -> String {
        let isRelated = Bool.random(using: &random)
        let count = Int.random(in: 0...5, using: &random)
        let source =
            isRelated
            ? patterns[Int.random(in: 0..<patterns.count, using: &random)]
            : "/" + Array(repeating: "*", count: count).joined(separator: "/")
        var segments: [String] = []
        for segment in ReferenceTable(entries: []).split(source) {
            if segment == "**" {
                for _ in 0..<Int.random(in: 0...2, using: &random) { segments.append(word(&random)) }
            } else if segment.contains("*") {
                segments.append(
                    segment.split(separator: "*", omittingEmptySubsequences: false).joined(separator: word(&random)))
            } else {
                segments.append(Int.random(in: 0..<12, using: &random) == 0 ? word(&random) : segment)
            }
        }
        return "/" + segments.joined(separator: "/")
    }

    private func word(_ random: inout SeededGenerator) -> String {
        Self.words[Int.random(in: 0..<Self.words.count, using: &random)]
    }

    @Test(arguments: [(UInt64(1), 40, 4_000), (2, 300, 2_000), (3, 10_000, 400)])
    func `find the same route as testing each in turn`(_ seed: UInt64, _ count: Int, _ rounds: Int) throws {
        var random = SeededGenerator(seed: seed)
        var patterns: [String] = []
        var sources: [RouteConfiguration] = []
        var entries: [ReferenceTable.Entry] = []
        let reference = ReferenceTable(entries: [])
        for index in 0..<count {
            let pattern = randomPattern(&random, index)
            let hosts = Self.hostPatterns.shuffled(using: &random).prefix(
                [0, 0, 1, 1, 2].randomElement(using: &random) ?? 0)
            let methods = Self.methods.shuffled(using: &random).prefix([0, 0, 1, 2].randomElement(using: &random) ?? 0)
            patterns.append(pattern)
            sources.append(route("r\(index)", hosts: Array(hosts), path: glob(pattern), methods: Array(methods)))
            entries.append(.init(hosts: Array(hosts), segments: reference.split(pattern), methods: Array(methods)))
        }
        let table = try compiled(sources)
        let expectation = ReferenceTable(entries: entries)
        var routed = 0
        for _ in 0..<rounds {
            let path = randomPath(&random, patterns)
            let method = Self.methods[Int.random(in: 0..<Self.methods.count, using: &random)]
            let host = Self.hosts[Int.random(in: 0..<Self.hosts.count, using: &random)]
            let expected = expectation.match(method, host, path)
            let found = table.match(method, path, host: host)
            switch found {
            case .route(let index):
                #expect(expected.index == index, "\(method) \(host) \(path)")
                routed += 1
            case .methodNotAllowed(let set):
                let names = Set(table.allowValue(set).split(separator: ", ").map(String.init))
                #expect(expected.index == nil && expected.allowed == names, "\(method) \(host) \(path)")
            case .none: #expect(expected.index == nil && expected.allowed.isEmpty, "\(method) \(host) \(path)")
            case .failed: Issue.record("no expressions here")
            }
        }
        #expect(routed > rounds / 10)
    }

    @Test func `are correct below their maximum depth`() throws {
        let deep = "/" + (0..<40).map { "s\($0)" }.joined(separator: "/")
        let table = try compiled([
            route("a", path: glob(deep + "/x")), route("b", path: glob(deep)), route("c", path: glob("/s0/**")),
        ])
        #expect(table.match("GET", deep + "/x") == .route(0))
        #expect(table.match("GET", deep) == .route(1))
        #expect(table.match("GET", deep + "/y") == .route(2))
        #expect(table.match("GET", String(repeating: "/s0", count: 2_000)) == .route(2))
    }
}
