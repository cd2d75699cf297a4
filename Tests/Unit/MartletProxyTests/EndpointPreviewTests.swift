import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletDecisionsTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `A preview of the endpoint` {
    private func preview(
        _ upstream: UpstreamConfiguration, subject: String? = nil, fields: [String] = []
    ) -> EndpointPreview {
        EndpointPreview(upstream, subject: subject, fields: fields.map { Secret($0) })
    }

    @Test func `names what the gateway chooses by hash`() {
        var configuration = SampleUpstream.configuration("api", SampleUpstream.addresses(1, 2, 3, 4))
        configuration.balance = .hashSubject
        let bench = UpstreamDirectoryBench(Upstream(configuration))
        for number in 0..<50 {
            let subject = "usr_\(number)"
            let position = bench.choose(hash: SubjectRevocationID.of(subject)) ?? -1
            let chosen = preview(configuration, subject: subject).chosen
            #expect(chosen == String(decoding: bench.endpoint(position).text, as: UTF8.self))
        }
        #expect(preview(configuration).chosen == nil)
    }

    @Test func `reads the header that is hashed, as the gateway does`() {
        var configuration = SampleUpstream.configuration("api", SampleUpstream.addresses(1, 2, 3, 4))
        configuration.balance = .hash(header: "x-key")
        let one = preview(configuration, fields: ["X-Key: a", "Other: b"]).chosen
        #expect(one != nil && one == preview(configuration, fields: ["x-key:a "]).chosen)
        #expect(preview(configuration, fields: ["Other: a"]).chosen == nil)
        let all = (0..<30).map { preview(configuration, fields: ["X-Key: \($0)"]).chosen }
        #expect(Set(all).count == 4)
    }

    @Test func `says why others are not chosen`() {
        var configuration = SampleUpstream.configuration("api", SampleUpstream.addresses(1, 2, 3))
        configuration.members[0].weight = 0
        configuration.members[2].isBackup = true
        let found = preview(configuration)
        #expect(found.chosen == "http://10.0.0.2")
        let notes = ["no requests: weight 0", "", "a backup: only while no other is usable"]
        #expect(found.endpoints.map(\.note) == notes)
    }

    @Test func `does not name one of several addresses of a name`() {
        let name = EndpointAddress.http(host: "db.internal", port: 80)
        var configuration = SampleUpstream.configuration("api", [name, SampleUpstream.address(2)])
        configuration.balance = .hashSubject
        #expect(preview(configuration, subject: "a").chosen == nil)
    }
}
