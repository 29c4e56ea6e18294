"""FederatedPCA against numpy's SVD, and its manners against scikit-learn's."""

import copy
import html

import numpy as np
import pandas
import pytest

import fedcore
from fedcore import algorithms
from fedcore.audits import leakage
from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA
from fedcore.federation.transcript import Transcript
from fedcore.linalg import sin_theta
from refused import refused

SIGMA = np.array([9.0, 5.0, 3.0, 1.0, 0.1, 0.05, 0.02, 0.01])


@pytest.fixture
def clients():
    rng = np.random.default_rng(7)
    left = np.linalg.qr(rng.standard_normal((60, 8)))[0]
    right = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    return np.split((left * SIGMA) @ right.T, [10, 25, 40])


def clone(estimator):
    """What sklearn.base.clone does: a new object from deep copies of the parameters."""
    params = {name: copy.deepcopy(v) for name, v in estimator.get_params(deep=False).items()}
    new = type(estimator)(**params)
    for name, value in new.get_params(deep=False).items():
        assert value is params[name]  # scikit-learn insists on identity
    return new


SUMS = [name for name in algorithms.names() if algorithms.get(name).gram_products_only]


@pytest.mark.parametrize("algorithm", SUMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(600, 20), (100, 200)], ids=["tall", "wide"])
def test_tall_and_wide_data_agree_with_the_svd(matrix_with, algorithm, dtype, shape):
    """The rounds multiply by the Gram matrix of tall data, and by wide data themselves."""
    S = 3.0 + matrix_with(*shape, 0.5 ** np.arange(min(shape)), seed=2)
    parts = np.array_split(S.astype(dtype), 4)
    model = FederatedPCA(3, algorithm=algorithm).fit(parts)
    exact = np.linalg.svd(S - S.mean(axis=0), full_matrices=False)[2][:3]
    limit = max(1e-8, 1000 * np.finfo(dtype).eps * 2.0**6)  # the tolerance, or rounding
    assert sin_theta(model.components_.T, exact.T) <= limit


def test_signs_and_order_depend_on_the_subspace_only(clients):
    rng = np.random.default_rng(3)
    one, other = (FederatedPCA(3, params={"start": rng.standard_normal((8, 3))}).fit(clients)
                  for _ in range(2))  # fmt: skip
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-7)
    for row in one.components_:
        assert row[np.argmax(np.abs(row))] > 0
    assert np.all(np.diff(one.explained_variance_) <= 0)


def test_the_first_and_the_last_round_are_charged(clients):
    plain = fedcore.run("power_exact", clients, 3, power=2).ledger
    n_clients, d, r = len(clients), 8, 3
    tested = fedcore.run("ssi", clients, 3, n_oversamples=1).ledger
    short = FederatedPCA(3, algorithm="ssi", center=False).fit(clients)
    assert short.ledger_.scalars_up == tested.scalars_up + n_clients * (r * r + 1)
    bare = FederatedPCA(3, algorithm="power_exact", params={"power": 2}, center=False).fit(clients)
    assert bare.ledger_.rounds == plain.rounds + 1
    # Moments, squares outside, and as there was no test the products.
    assert bare.ledger_.scalars_up == plain.scalars_up + n_clients * (r * r + 1 + d * r)
    assert bare.ledger_.scalars_down == plain.scalars_down + n_clients * d * r
    assert bare.history_["round"][-1] == plain.rounds
    pca = FederatedPCA(3, algorithm="power_exact", params={"power": 2}).fit(clients)
    assert pca.ledger_.rounds == bare.ledger_.rounds + 1
    assert pca.ledger_.scalars_up == bare.ledger_.scalars_up + n_clients * (d + 2)
    assert pca.ledger_.scalars_down == bare.ledger_.scalars_down + n_clients * d
    assert pca.history_["round"][0] == bare.history_["round"][0] + 1


def test_a_tolerance_ends_the_rounds_and_running_out_of_them_is_told(clients):
    exact, rough = FederatedPCA(2).fit(clients), FederatedPCA(2, tol=0.1).fit(clients)
    assert rough.n_iter_ < exact.n_iter_ < 10 and rough.converged_ and exact.converged_
    with pytest.warns(fedcore.ConvergenceWarning):
        short = FederatedPCA(2, params={"rounds": 1}).fit(clients)
    assert not short.converged_ and short.n_iter_ == 1
    assert FederatedPCA(2, algorithm="power_exact").fit(clients).converged_ is None
    refused(lambda: FederatedPCA(2, algorithm="power_exact", tol=0.1).fit(clients), InputError)


def test_more_components_than_the_data_determine_are_told_of(matrix_with):
    S = matrix_with(60, 8, np.array([3.0, 2.0]), seed=1)
    with pytest.warns(fedcore.ConvergenceWarning):
        FederatedPCA(4).fit(np.split(S, 3))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, -1e8])
def test_data_far_from_the_origin_keep_the_digits_they_have(clients, offset):
    shifted = [client + offset for client in clients]
    kept = np.vstack([client - offset for client in shifted])  # exact: what rounding has left
    sigma = np.linalg.svd(kept - kept.mean(axis=0))[1]
    pca = FederatedPCA(3).fit(shifted)
    # The mean is rounded to 2e-16 of the offset, 2e-8 at most, and squares feel that squared.
    np.testing.assert_allclose(pca.singular_values_, sigma[:3], rtol=1e-12)
    np.testing.assert_allclose(
        pca.mean_ - offset, kept.mean(axis=0), atol=1e-13 + 4e-16 * abs(offset)
    )


@pytest.mark.parametrize("spread", [1.0, 1e3])  # of 1, differences and their sums are exact
def test_the_mean_of_single_precision_data_is_summed_in_double(spread):
    rng = np.random.default_rng(0)
    parts = [(1e4 + spread * rng.standard_normal((30000, 3))).astype(np.float32) for _ in range(2)]
    pca = FederatedPCA(2).fit(parts)
    exact = np.vstack(parts).astype(np.float64).mean(axis=0)
    # In single precision the sum of 60 000 numbers of 1e4 would be off by 1e-3 and more.
    np.testing.assert_allclose(pca.mean_, exact, rtol=0, atol=1e-10)
    assert pca.ledger_.bytes_up - 4 * pca.ledger_.scalars_up == 4 * 2 * (3 + 2)  # doubles


def scaled(federation):
    return {"scale": federation.scale(np.zeros(8))}


def test_a_first_exchange_a_run_and_the_last_one_are_of_one_federation(clients):
    seen, S = Transcript(sums_only=True), np.vstack(clients)
    found = fedcore.run("ssi", clients, 2, rounds=2, tol=0, center=True, begin=scaled,
                        transcript=seen)  # fmt: skip
    np.testing.assert_allclose(found.output["scale"], S.std(axis=0), rtol=1e-12)
    assert [exchange.round for exchange in seen.exchanges] == [1, 2, 3, 4]
    assert found.ledger.rounds == 4 and found.history["round"].tolist() == [2, 3, 4]
    options = {"algorithm": "ssi", "params": {"rounds": 2, "tol": 0, "transcript": seen}}
    with pytest.warns(fedcore.ConvergenceWarning):
        pca = FederatedPCA(2, scale=True, **options).fit(clients)
    assert [exchange.round for exchange in seen.exchanges[4:]] == [1, 2, 3, 4, 5]
    assert pca.ledger_.rounds == 5 and pca.history_["round"].tolist() == [2, 3, 4]


def test_a_private_algorithm_is_not_centred_bare(clients):
    seen = Transcript()
    with pytest.raises(InputError):
        fedcore.run("analyze_gauss", clients, 2, center=True, clip=True, transcript=seen)
    assert not seen.exchanges  # nothing has crossed yet
    with pytest.raises(InputError):
        fedcore.run("analyze_gauss", clients, 2, begin=scaled, clip=True, transcript=seen)
    assert not seen.exchanges
    with pytest.raises(InputError):
        FederatedPCA(2, algorithm="analyze_gauss", params={"clip": True, "transcript": seen}).fit(
            clients
        )
    assert not seen.exchanges


def test_who_protects_without_an_epsilon_among_its_parameters_has_no_bare_last_round(
    clients, redeclared
):
    """An algorithm of another package may call ε something else."""
    real = algorithms.get("ssi").run

    def run(federation, params, rng, record):
        federation.protect(delta=1e-6, neighbours="replace_one")
        return real(federation, params, rng, record)

    redeclared("ssi", run=run)
    seen = Transcript()
    pca = FederatedPCA(2, algorithm="ssi", center=False, tol=0,
                       params={"rounds": 3, "transcript": seen})  # fmt: skip
    refused(lambda: pca.fit(clients), InputError)
    assert {exchange.round for exchange in seen.exchanges} == {1, 2, 3}  # no other round


def test_run_centres_and_measures_the_centred_data(clients):
    S = np.vstack(clients)
    found = fedcore.run("centralized_svd", clients, 3, center=True)
    np.testing.assert_allclose(found.output["mean"], S.mean(axis=0), rtol=1e-12)
    sigma = np.linalg.svd(S - S.mean(axis=0))[1]
    floor = 0.5 * np.sum(sigma[3:] ** 2)
    np.testing.assert_allclose(found.history["objective"][-1], floor, rtol=1e-10)


def test_the_server_sees_the_mean_of_a_client_or_that_of_all(clients):
    every, summed = Transcript(clients=[1]), Transcript(sums_only=True)
    for transcript in (every, summed):
        fedcore.run("ssi", clients, 2, rounds=1, tol=0, center=True, transcript=transcript)
    first = every.exchanges[0]
    assert (first.round, first.client) == (1, 1)
    sums = [*clients[1].sum(axis=0), len(clients[1]), 0]  # no feature is far from the origin
    np.testing.assert_allclose(first.sent, sums, rtol=1e-12)
    total = summed.exchanges[0]
    S = np.vstack(clients)
    assert (total.round, total.client) == (1, None)
    np.testing.assert_allclose(total.sent, [*S.sum(axis=0), len(S), 0], rtol=1e-12)


def test_secure_sums_show_the_server_no_client(clients):
    """With the default; without them a client's Gram matrix is known after d / r rounds."""
    S = np.vstack(clients)
    parts = [client - S.mean(axis=0) for client in clients]
    every, summed = Transcript(clients=[1]), Transcript(sums_only=True)
    for transcript in (every, summed):
        FederatedPCA(3, params={"rounds": 9, "transcript": transcript}).fit(clients)
    assert {exchange.client for exchange in summed.exchanges} == {None}
    own, pooled = parts[1].T @ parts[1], sum(part.T @ part for part in parts)
    pairs = leakage.pairs_of(every.exchanges_of(1))
    assert leakage.errors(pairs, own)[1] < 1e-10  # 8 features, 3 and one more in a round
    assert leakage.errors(leakage.pairs_of(summed.exchanges_of(None)), pooled)[1] < 1e-10


NAMES = [f"f{i}" for i in range(8)]


def framed(values, columns=NAMES):
    return pandas.DataFrame(values, columns=columns)


def test_column_names_are_kept_and_asked_for_in_transform(clients):
    pca = FederatedPCA(2).fit([framed(client) for client in clients])
    assert pca.feature_names_in_.tolist() == NAMES
    plain = FederatedPCA(2).fit(clients)
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_array_equal(plain.components_, pca.components_)
    np.testing.assert_array_equal(pca.transform(framed(clients[0])), pca.transform(clients[0]))
    refused(lambda: pca.transform(framed(clients[0], ["age", *NAMES[1:]])), InputError)
    assert not hasattr(pca.fit(clients), "feature_names_in_")
    numbered = [framed(client, range(8)) for client in clients]
    assert not hasattr(pca.fit(numbered), "feature_names_in_")


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_the_seed_and_goes_on(clients, kind):
    """As in scikit-learn: equal generators, equal results; a second fit takes new numbers."""

    def found(generator):
        options = {"algorithm": "ssi", "params": {"rounds": 1, "tol": 0}}
        return FederatedPCA(2, random_state=generator, **options).fit(clients).components_.tobytes()

    one, other = kind(3), kind(3)
    first = found(one)
    assert found(other) == first != found(one)


@pytest.mark.filterwarnings("error::fedcore.ConvergenceWarning")
@pytest.mark.parametrize("algorithm", ["block_krylov", "momentum_power", "ssi"])
@pytest.mark.parametrize("scale", [2e-154, 1e-150, 1e-100, 1e-90, 1e90, 1e100])
def test_data_of_any_size_converge_alike(clients, algorithm, scale):
    pca = FederatedPCA(3, algorithm=algorithm).fit([scale * client for client in clients])
    S = np.vstack(clients)
    sigma = np.linalg.svd(S - S.mean(axis=0), compute_uv=False)
    assert pca.converged_
    np.testing.assert_allclose(pca.singular_values_ / scale, sigma[:3], rtol=1e-10)


def test_clients_may_come_from_an_iterator_or_with_names(clients):
    expected = FederatedPCA(2).fit(clients)
    found = FederatedPCA(2).fit(client for client in clients)
    np.testing.assert_array_equal(found.components_, expected.components_)
    ran = [fedcore.run("ssi", give(clients), 2).components for give in (iter, list)]
    np.testing.assert_array_equal(*ran)
    named = dict(zip("abcd", clients, strict=True))
    np.testing.assert_array_equal(
        FederatedPCA(2).fit(named.values()).components_, expected.components_
    )
    np.testing.assert_array_equal(FederatedPCA(2).fit(named).components_, expected.components_)
    np.testing.assert_array_equal(fedcore.run("ssi", named, 2).components, ran[0])


def test_params_go_round():
    pca = FederatedPCA(2, algorithm="power_gd", params={"local_steps": 7, "momentum": True})
    named = {
        "n_components": 2, "algorithm": "power_gd", "center": True, "scale": False, "tol": None,
        "random_state": 0, "epsilon": None, "delta": None, "bounds": None, "verbose": False,
        "params": {"local_steps": 7, "momentum": True},
    }  # fmt: skip
    assert pca.get_params(deep=False) == named
    deep = named | {"params__local_steps": 7, "params__momentum": True}
    assert pca.get_params() == deep
    assert FederatedPCA(**named).get_params() == deep
    copied = clone(pca)
    assert copied.set_params(params__local_steps=9, n_components=3) is copied
    assert (copied.n_components, copied.params["local_steps"]) == (3, 9)
    assert pca.params["local_steps"] == 7
    refused(lambda: copied.set_params(center=False, n_componnts=4), InputError, "n_components")
    assert copied.center and copied.n_components == 3  # nothing was set
    copied.set_params(params__momentum=False, params={"power": 1})
    assert copied.params == {"power": 1, "momentum": False}
    assert not hasattr(copied, "components_")


def test_a_notebook_shows_what_print_shows(clients):
    pca = FederatedPCA(2, params={"start": None}).fit(clients)
    assert html.unescape(pca._repr_html_()) == f"<pre>{pca}</pre>"


def test_repr_is_the_call():
    assert repr(FederatedPCA(2)) == "FederatedPCA(n_components=2)"
    pca = FederatedPCA(2, algorithm="power_gd", random_state=1, params={"momentum": True})
    assert eval(repr(pca)).get_params() == pca.get_params()
