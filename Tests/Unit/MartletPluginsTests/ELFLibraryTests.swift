import MartletPlugins
import MartletTesting
import Testing

@Suite struct `The bytes of a library` {
    @Test func `say what it needs, defines and lacks`() throws {
        let bytes = try CompiledLibrary.bytes(
            """
            extern int martlet_missing(void);
            extern int martlet_optional(void) __attribute__((weak));
            int martlet_defined(void) { return martlet_missing() + (martlet_optional ? martlet_optional() : 0); }
            static int hidden(void) { return 1; }
            int (*const martlet_pointer)(void) = hidden;
            """, "-Wl,--no-as-needed", "-lm")
        let library = try ELFLibrary(bytes)
        #expect(library.defined.contains("martlet_defined") && library.defined.contains("martlet_pointer"))
        #expect(!library.defined.contains("hidden"))
        #expect(library.undefined.contains("martlet_missing"))
        #expect(!library.undefined.contains("martlet_optional"))
        #expect(library.needed.contains { $0.hasPrefix("libm.so") })
        #expect(library.notes.isEmpty)
    }

    @Test(arguments: ["sysv", "gnu"])
    func `are counted by either hash table`(style: String) throws {
        let library = try ELFLibrary(
            CompiledLibrary.bytes(
                "int one(void) { return 1; } int two(void) { return 2; }", "-Wl,--hash-style=\(style)"))
        #expect(Set(library.defined).isSuperset(of: ["one", "two"]))
    }

    @Test func `have a note`() throws {
        let source = """
            __attribute__((section(".note.martlet"), used, aligned(4)))
            static const struct { unsigned a, b, c; char name[8]; char text[4]; } note = { 8, 4, 1, "Martlet", "abc" };
            """
        #expect(try ELFLibrary(CompiledLibrary.bytes(source)).notes == [Array("abc\0".utf8)])
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let offset: Int
        let value: UInt8
        let kind: ELFError.Kind
    }

    @Test(arguments: [
        Change(testDescription: "no magic number", offset: 0, value: 0, kind: .notELF),
        Change(testDescription: "32 bits", offset: 4, value: 1, kind: .wrongArchitecture),
        Change(testDescription: "big-endian", offset: 5, value: 2, kind: .wrongArchitecture),
        Change(testDescription: "an object file", offset: 16, value: 1, kind: .wrongArchitecture),
        Change(testDescription: "an executable", offset: 16, value: 2, kind: .wrongArchitecture),
        Change(testDescription: "another machine", offset: 18, value: 8, kind: .wrongArchitecture),
        Change(testDescription: "other program headers", offset: 54, value: 32, kind: .damaged),
        Change(testDescription: "too many program headers", offset: 57, value: 255, kind: .damaged),
        Change(testDescription: "program headers outside", offset: 36, value: 255, kind: .damaged),
    ])
    func `are rejected for one that is wrong`(change: Change) throws {
        var bytes = try CompiledLibrary.bytes("int one(void) { return 1; }")
        bytes[change.offset] = change.value
        let error = #expect(throws: ELFError.self) { try ELFLibrary(bytes) }
        #expect(error?.kind == change.kind)
    }

    @Test func `that end anywhere are rejected or read, and never a crash`() throws {
        let bytes = try CompiledLibrary.bytes("int one(void) { return 1; }")
        let whole = try ELFLibrary(bytes)
        for length in stride(from: 0, to: bytes.count, by: 7) {
            if let library = try? ELFLibrary(Array(bytes.prefix(length))) { #expect(library == whole) }
        }
        #expect(throws: ELFError.self) { try ELFLibrary([]) }
    }

    @Test func `with random changes are never a crash`() throws {
        let bytes = try CompiledLibrary.bytes("int one(void) { return 1; }")
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            var changed = bytes
            for _ in 0..<4 {
                // Most of what is read stands in the first pages.
                let offset = Int.random(in: 0..<min(2048, bytes.count), using: &generator)
                changed[offset] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = try? ELFLibrary(changed)
        }
    }
}
