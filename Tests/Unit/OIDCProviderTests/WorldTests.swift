import MartletCore
import MartletJSON
import MartletProvider
import Testing

/// Tokens, key sets and discovery documents in the shapes of real issuers, each with a short configuration.
@Suite struct WorldTests {
    @Test(arguments: WorldIssuer.all)
    func `a token of the issuer is accepted, with at most ten lines of configuration`(world: WorldIssuer) async throws {
        #expect(world.configuration.split(separator: "\n").count <= 10)
        let identity = try await world.bench().identity(world.token())
        #expect(identity.issuer == world.issuer && identity.providerSubject == world.subject)
        for member in world.seen.members { #expect(identity.claims[member.name] == member.value, "\(member.name)") }
    }

    @Test(arguments: WorldIssuer.all)
    func `the same with one thing wrong is rejected for its own reason`(world: WorldIssuer) async throws {
        let bench = try world.bench()
        #expect(try await bench.failureCode(world.token()) == nil)
        for fault in world.faults {
            #expect(try await bench.failureCode(world.token(fault)) == fault.code, "\(fault.name)")
        }
        // Of each: another key, whatever its header says.
        let parts = try world.token().split(separator: ".")
        let other = try WorldIssuer.all[0].token().split(separator: ".")[2]
        let signature = world.name == WorldIssuer.all[0].name ? String(parts[2].reversed()) : String(other)
        let code = await bench.failureCode("\(parts[0]).\(parts[1]).\(signature)")
        #expect(code == "oidc.bad_signature" || code == "oidc.malformed")
    }

    @Test func `all issuers have names of their own`() {
        #expect(Set(WorldIssuer.all.map(\.name)).count == 13)
    }
}
