"""The estimator among scikit-learn's own: checks, pipelines, grids, containers, routing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA
from processes import python
from refused import refused

sklearn = pytest.importorskip("sklearn")
checks = pytest.importorskip("sklearn.utils.estimator_checks")
if not hasattr(checks, "estimator_checks_generator"):
    pytest.skip("needs scikit-learn 1.6", allow_module_level=True)

from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_digits, load_iris, load_wine  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

LISTED = "a list is one of clients, not the rows of one matrix"
EXPECTED = {
    "check_dtype_object": "what is no number is an InputError, a ValueError and no TypeError",
}
# Of a private fit, whose tag says that it is random, scikit-learn itself leaves out the checks that
# want the same result twice, but for this one.
NOISE = {"check_fit_idempotent": "two fits have different noise"}
PRIVATE = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-5.0, 5.0)}
CHECKED = {
    "pca": (lambda: FederatedPCA(), {"check_transformer_data_not_an_array": LISTED}),
    "private": (lambda: FederatedPCA(1, **PRIVATE), NOISE),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHECKED)
def test_the_checks_of_scikit_learn_pass_but_for_those_that_are_listed(name):
    make, own = CHECKED[name]
    failed, done = {}, 0
    for estimator, check in checks.estimator_checks_generator(make()):
        named = getattr(check, "func", check).__name__
        try:
            check(estimator)
            done += 1
        except pytest.skip.Exception:
            continue
        except Exception as error:
            if type(error).__name__ != "SkipTest":
                failed[named] = error
    assert failed.keys() == {*EXPECTED, *own}, failed
    assert done > (37 if name == "private" else 40)
    for named in failed.keys() - NOISE:  # for the reason that is listed, and not for another
        chain = [failed[named]]
        while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(before)
        assert any(isinstance(one, InputError) for one in chain), (named, chain)


@pytest.mark.parametrize("attempt", range(10))
def test_what_one_private_fit_gives_is_the_same_for_every_subset_and_order(attempt):
    """Checks that scikit-learn leaves out of a random estimator, though each is about one fit."""
    for check in (
        checks.check_fit_score_takes_y,
        checks.check_methods_subset_invariance,
        checks.check_methods_sample_order_invariance,
    ):
        check("FederatedPCA", FederatedPCA(1, **PRIVATE))


@pytest.mark.parametrize("attempt", range(5))
def test_a_grid_over_private_fits_scores_every_candidate(attempt):
    X = np.random.default_rng(attempt).standard_normal((4000, 5)) * [2.0, 0.5, 0.1, 0.05, 0.02]
    grid = GridSearchCV(
        FederatedPCA(**PRIVATE), {"n_components": [1, 2, 3, 4]}, error_score="raise"
    )
    assert np.isfinite(grid.fit(X).cv_results_["mean_test_score"]).all()


DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n_components", [1, 3, 0.5, 0.9, 0.99, None])
def test_attributes_are_those_of_pca(name, n_components):
    X = DATA[name]().data
    ours = FederatedPCA(n_components).fit(np.array_split(X, 4))
    theirs = PCA(n_components, svd_solver="full").fit(X)
    assert ours.n_components_ == theirs.n_components_
    assert ours.n_features_in_ == theirs.n_features_in_ and ours.n_samples_ == theirs.n_samples_
    total = np.var(X, axis=0, ddof=1).sum()
    # Rounding of squares is 1e-16 of the total, tol = 1e-8 squared for a share of each component.
    for attribute in ("explained_variance_", "noise_variance_"):
        np.testing.assert_allclose(
            getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-6, atol=1e-13 * total
        )
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-6, atol=1e-13
    )
    assert list(ours.get_feature_names_out()) == [
        f"federatedpca{i}" for i in range(ours.n_components_)
    ]
    if theirs.noise_variance_ > 0:
        np.testing.assert_allclose(ours.score(X), theirs.score(X), rtol=1e-6)
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-5)
        scale = total * 1e-6
        np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=scale)
        product = ours.get_covariance() @ ours.get_precision()
        np.testing.assert_allclose(product, np.eye(X.shape[1]), atol=1e-8)


def test_the_density_of_scaled_data_is_in_data_units():
    X = load_wine().data
    pca = FederatedPCA(13, scale=True).fit([X])
    whole = FederatedPCA(13).fit([X])  # the same Gaussian: no direction is left out
    np.testing.assert_allclose(pca.score(X), whole.score(X), rtol=1e-9)
    np.testing.assert_allclose(pca.get_covariance(), np.cov(X.T), rtol=1e-7, atol=1e-7)
    flat = np.column_stack([X[:, :2], np.ones(len(X))])
    refused(lambda: FederatedPCA(2).fit([flat]).score(flat), InputError)


def test_it_works_in_a_pipeline_and_a_grid():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(len(X)) % 3
    pipe = make_pipeline(StandardScaler(), FederatedPCA(2), LogisticRegression())
    pipe.fit(X, y, federatedpca__groups=groups)
    assert pipe[1].ledger_.scalars_up % 3 == 0 and pipe.score(X, y) > 0.9
    plain = make_pipeline(StandardScaler(), PCA(2), LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(pipe.predict(X), plain.predict(X))
    grid = GridSearchCV(FederatedPCA(), {"n_components": [1, 2, 3]}).fit(X)
    theirs = GridSearchCV(PCA(), {"n_components": [1, 2, 3]}).fit(X)
    assert grid.best_params_ == theirs.best_params_
    np.testing.assert_allclose(
        grid.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-6
    )
    rounds = GridSearchCV(FederatedPCA(2), {"params__rounds": [50, 60], "scale": [True]}).fit(X)
    assert rounds.best_estimator_.params == {"rounds": 50}


def test_groups_are_routed_to_the_clients():
    X = load_iris().data
    groups = np.arange(len(X)) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        asks = clone(FederatedPCA(2).set_fit_request(groups=True))
        grid = GridSearchCV(asks, {"scale": [False]}, cv=GroupKFold(3)).fit(X, groups=groups)
        assert grid.best_estimator_.ledger_ == FederatedPCA(2).fit(X, groups=groups).ledger_
        assert grid.best_estimator_.ledger_ != FederatedPCA(2).fit(X).ledger_
        unasked = GridSearchCV(FederatedPCA(2), {"scale": [False]}, cv=GroupKFold(3))
        with pytest.raises(ValueError):
            unasked.fit(X, groups=groups)


def test_output_may_be_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(load_iris().data, index=[f"s{i}" for i in range(150)]).add_prefix("f")
    pca = FederatedPCA(2).set_output(transform="pandas").fit(X)
    frame = pca.transform(X)
    assert list(frame.columns) == ["federatedpca0", "federatedpca1"]
    assert list(frame.index) == list(X.index)
    assert list(clone(pca).fit_transform(X).columns) == list(frame.columns)
    pca.set_output(transform="default")
    np.testing.assert_array_equal(pca.transform(X), frame)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(FederatedPCA(2).fit(X).transform(X), pandas.DataFrame)
    refused(lambda: pca.get_feature_names_out(["a"] * 4), InputError)


def test_fitted_or_not_is_known_to_scikit_learn():
    X = load_iris().data
    for call in (check_is_fitted, lambda pca: pca.transform(X)):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            call(FederatedPCA(2))
    check_is_fitted(FederatedPCA(2).fit(X))


def test_scikit_learn_need_not_be_there():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import numpy as np, fedcore\n"
        "X = np.random.default_rng(0).standard_normal((30, 4))\n"
        "pca = fedcore.FederatedPCA(2)\n"
        "try: pca.transform(X)\n"
        "except fedcore.FedcoreError as error: print(type(error).__name__)\n"
        "print(pca.fit_transform(X, groups=[0, 1] * 15).shape)\n"
    )
    assert python("-c", code).stdout == "NotFittedError\n(30, 2)\n"


def test_no_warning_for_the_last_of_all_components():
    """None asks for all: that those without variance are arbitrary is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FederatedPCA().fit(np.random.default_rng(0).standard_normal((6, 9)))
