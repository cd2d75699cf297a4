import MartletCore
import Testing

@testable import MartletConfig

private struct Greeting: KeyedBlock {
    enum Tone: String, ConfigurationChoice { case warm, cold }

    var name = ""
    var tone = Tone.warm
    var pause = Duration.seconds(60)
    var words: [String] = []
    var size = 2048
    var limit: Int?

    static let keys: [ConfigurationKey<Self>] = [
        .required("name", \.name, where: .notEmpty, endsBlock: true, "Who is addressed."),
        .key("tone", \.tone, "How it sounds."),
        .key("pause", \.pause, in: .zero ... .seconds(90), "How long it waits."),
        .block("text", "What it says.", [.key("words", \.words, as: NonEmpty<String>.self, "The words.")]),
        .key("size", \.size, as: ByteSize.self, "How long it may be."),
        .key("limit", \.limit, in: 1...9, "How often it may come."),
        .check { greeting, reader in
            guard greeting.tone == .cold, let node = reader.given("limit") else { return }
            reader.error(.configConflictingKeys, at: node.location, "limit: needs a warm tone")
        },
    ]
}

private func greeting(_ text: String) throws -> (greeting: Greeting?, lines: [String]) {
    var diagnostics = Diagnostics()
    let greeting = try #require(parse(text).node).decode(Greeting.self, title: "greeting", into: &diagnostics)
    return (greeting, diagnostics.sorted.map { "\($0.location.line): \($0.text)" })
}

@Suite struct `A table of keys` {
    @Test func `is a grammar with the defaults of the properties`() throws {
        let grammar = try #require(Greeting.grammar)
        #expect(grammar.keyNames == ["name", "tone", "pause", "text", "size", "limit"])
        #expect(grammar.keys.map(\.fallback) == [nil, "warm", "60s", nil, "2KiB", nil])
        #expect(grammar.keys.map(\.isRequired) == [true, false, false, false, false, false])
        #expect(grammar.keys[3].shape.blocks.first?.grammar.keyNames == ["words"])
        guard case .choice(["warm", "cold"]) = grammar.keys[1].shape, case .integer(1...9) = grammar.keys[5].shape,
            case .duration = grammar.keys[2].shape, case .size = grammar.keys[4].shape
        else {
            Issue.record("\(grammar)")
            return
        }
    }

    @Test func `reads the properties`() throws {
        let (read, lines) = try greeting(
            "{ name: you, tone: cold, pause: 1s, text: { words: [a, b] }, size: 1MiB }")
        let greeting = try #require(read)
        #expect(lines.isEmpty && greeting.name == "you" && greeting.tone == .cold && greeting.pause == .seconds(1))
        #expect(greeting.words == ["a", "b"] && greeting.size == 1 << 20 && greeting.limit == nil)
    }

    @Test func `reports every error of the optional ones, then that of the required`() throws {
        let (read, lines) = try greeting(
            """
            pause: 2m
            text: { words: [], word: x }
            limit: 10
            name: ""
            """)
        #expect(read == nil)
        #expect(
            lines == [
                "1: pause: must be between 0s and 90s, not 2m",
                "2: words: must not be empty", "2: unknown key 'word' in greeting.text (did you mean 'words'?)",
                "3: limit: must be between 1 and 9, not 10", "4: name: must not be empty",
            ])
    }

    @Test func `checks what was read`() throws {
        #expect(try greeting("{ name: you, tone: cold, limit: 3 }").lines == ["1: limit: needs a warm tone"])
        #expect(try greeting("{ name: you, limit: 3 }").lines.isEmpty)
        #expect(try greeting("{ tone: cold, limit: 3 }").lines == ["1: missing key 'name' in greeting"])
    }
}
